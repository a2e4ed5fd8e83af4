// Vectors of L floats, and the functions of them that attention needs.
//
// They are the vector extensions of GCC and Clang: one source for every instruction set. The
// only intrinsics are AVX-512's minimum and maximum, which compilers do not find, and its
// approximate reciprocal, where the build asks for it: one step of Newton's makes it as good as
// a division, which on some processors takes twice as long.

#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if REGARD_LANES == 16
#include <immintrin.h>
#endif

#define INLINE inline __attribute__((always_inline))

namespace {

constexpr int L = REGARD_LANES;
constexpr int W = 2 * L;  // features that are handled together: two that share a division

typedef float V __attribute__((vector_size(4 * L)));
typedef int32_t I __attribute__((vector_size(4 * L)));
typedef float Loose __attribute__((vector_size(4 * L), aligned(4), may_alias));

INLINE V load(const float* p) { return *(const Loose*)p; }
INLINE void store(float* p, V x) { *(Loose*)p = x; }
INLINE V all(float x) { return x - V{}; }
INLINE V pick(I which, V a, V b) { return which ? a : b; }
INLINE V abs_of(V x) { return (V)((I)x & 0x7fffffff); }
// A NaN in the first argument stays.
#if REGARD_LANES == 16
INLINE V at_most(V x, V limit) { return (V)_mm512_min_ps((__m512)limit, (__m512)x); }
INLINE V at_least(V x, V limit) { return (V)_mm512_max_ps((__m512)limit, (__m512)x); }
INLINE V larger(V x, V y) { return (V)_mm512_max_ps((__m512)x, (__m512)y); }
#else
INLINE V at_most(V x, V limit) { return pick(x > limit, limit, x); }
INLINE V at_least(V x, V limit) { return pick(x < limit, limit, x); }
// The second where one is NaN.
INLINE V larger(V x, V y) { return pick(x > y, x, y); }
#endif

// Null is fine for nothing, unlike with memset.
template <typename T>
INLINE void clear(T* p, int64_t n) {
  if (n > 0) memset(p, 0, sizeof(T) * n);
}

// The first n of L floats, or none; the rest is 0.
INLINE V load_part(const float* p, int64_t n) {
  if (n >= L) return load(p);
  float part[L] = {};
  for (int64_t i = 0; i < n; i++) part[i] = p[i];
  return load(part);
}

INLINE void store_part(float* p, V x, int64_t n) {
  if (n >= L) return store(p, x);
  float part[L];
  store(part, x);
  for (int64_t i = 0; i < n; i++) p[i] = part[i];
}

INLINE float sum_of(V x) {
  float part[L];
  store(part, x);
#pragma GCC unroll 8
  for (int w = L / 2; w >= 1; w /= 2)
    for (int i = 0; i < w; i++) part[i] += part[i + w];
  return part[0];
}

#if REGARD_LANES == 16
INLINE __m512 halves_of(__m512 x, __m512 y) {
  return _mm512_unpacklo_ps(x, y) + _mm512_unpackhi_ps(x, y);
}
#endif

// Write the sums of n vectors.
template <int n>
INLINE void sums_of(const V* x, float* out) {
#if REGARD_LANES == 16
  // Eight at a time, each step adding halves of two of them.
  if (n % 8 == 0) {
#pragma GCC unroll 4
    for (int i = 0; i < n; i += 8) {
      __m512 four[2];
#pragma GCC unroll 2
      for (int j = 0; j < 2; j++) {
        const __m512* t = (const __m512*)x + i + 4 * j;
        const __m512d a = (__m512d)halves_of(t[0], t[1]), b = (__m512d)halves_of(t[2], t[3]);
        four[j] = (__m512)_mm512_unpacklo_pd(a, b) + (__m512)_mm512_unpackhi_pd(a, b);
      }
      __m512 sums = _mm512_shuffle_f32x4(four[0], four[1], 0x88) +
                    _mm512_shuffle_f32x4(four[0], four[1], 0xdd);
      sums += _mm512_shuffle_f32x4(sums, sums, 0xb1);
      sums = _mm512_shuffle_f32x4(sums, sums, 0x08);
      _mm256_storeu_ps(out + i, _mm512_castps512_ps256(sums));
    }
    return;
  }
#endif
#pragma GCC unroll 8
  for (int i = 0; i < n; i++) out[i] = sum_of(x[i]);
}

INLINE float largest_of(V x) {
  float part[L], found = 0;
  store(part, x);
  for (int i = 0; i < L; i++)
    if (part[i] > found) found = part[i];
  return found;
}

// x / y, for a y and a result that are normal numbers.
INLINE V quotient(V x, V y) {
#if REGARD_APPROXIMATE
  V inverse = (V)_mm512_maskz_rcp14_ps(0xffff, (__m512)y);
  V near = x * inverse;
  return near + (x - y * near) * inverse;
#else
  return x / y;
#endif
}

// The same, where the result is only added to something: one operation less, one rounding more.
INLINE V ratio(V x, V y) {
#if REGARD_APPROXIMATE
  V inverse = (V)_mm512_maskz_rcp14_ps(0xffff, (__m512)y);
  return x * (inverse + inverse * (1.0f - y * inverse));
#else
  return x / y;
#endif
}

// 2^shift e^(x + rest), for abs(x) up to 87 and a rest that is tiny beside it.
INLINE V exponential(V x, V rest, int shift) {
  const V magic = all(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
  V j = (x * 1.44269504088896341f + magic) - magic;
  V r = x - j * 0.693359375f;
  r = r - j * -2.12194440e-4f + rest;
  V p = all(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r) * r + r + 1.0f;
  return p * (V)((__builtin_convertvector(j, I) + (127 + shift)) << 23);
}

// tanh(x) where abs(x) is at most 0.625.
INLINE V tangent_near(V x) {
  V y = x * x;
  V p = all(-5.70498872745e-3f);
  p = p * y + 2.06390887954e-2f;
  p = p * y - 5.37397155531e-2f;
  p = p * y + 1.33314422036e-1f;
  p = p * y - 3.33332819422e-1f;
  return x + x * (y * p);
}

INLINE V tangent(V x) {
  V size = at_most(abs_of(x), all(10.0f));
  V far = 1.0f - 2.0f / (1.0f + exponential(2.0f * size, V{}, 0));
  return pick(size < 0.625f, tangent_near(x), (V)((I)far | ((I)x & (int32_t)0x80000000)));
}

INLINE V sigmoid(V x) {
  V y = exponential(at_most(at_least(x, all(-80.0f)), all(80.0f)), V{}, 0);
  // Of the two equal forms the one that does not cancel.
  return y / (1.0f + y);
}

}  // namespace
