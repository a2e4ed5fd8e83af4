// Additive attention scores and their gradient, float32, one thread.
//
//     scores[b, t, i] = sum_d v[d] tanh(query[b, t, d] + key[b, i, d])
//
// This file is compiled once for each instruction set, under a name and with a vector length
// that the build gives (REGARD_VARIANT, REGARD_LANES); dispatch.cpp chooses at run time. It uses
// the vector extensions of GCC and Clang and no intrinsics.
//
// With r = 1 / (1 + e^{2q} e^{2k}), tanh(q + k) = 1 - 2 r. So the loop over pairs needs no
// exponential, and two features share one division: x/a + y/b = (x b + y a) / (a b). What keeps
// this right:
//
// 1. Each feature is shifted to the middle of the narrower of its two sides, so that opposite
//    offsets of queries and keys cancel before any exponential. The shift's rounding error is
//    carried into the exponential.
// 2. The wider side is clamped where the tangent is saturated for every partner.
// 3. Terms are scaled by 2^-62, so that the product of two uses the whole range of exponents.
// 4. Examples whose narrower side is still too wide, or that hold a NaN or an infinity, take a
//    tangent for each pair; so do examples whose sums are all near zero, where 1 - 2 r would
//    cancel. The choice is made example by example: no result depends on others in the batch.
//
// One feature's tangent is within 3e-7 of the exact one, and many average. Where v leaves few
// that matter, the tangents are computed one by one as well; they are within 2e-7.

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define INLINE inline __attribute__((always_inline))
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

namespace {

constexpr int L = REGARD_LANES;
constexpr int W = 2 * L;  // features that are handled together: two that share a division

typedef float V __attribute__((vector_size(4 * L)));
typedef int32_t I __attribute__((vector_size(4 * L)));
typedef float Loose __attribute__((vector_size(4 * L), aligned(4), may_alias));

constexpr float SCALE = 0x1p-62f;
constexpr int HALF_SCALE = -31;     // its exponent on each of the two factors
constexpr float SATURATED = 12.0f;  // 1 - tanh(12) = 8e-11
constexpr float WIDEST = 15.5f;     // 2^-62 e^{2 (2 * 15.5 + 12)}, squared, is below 2^127
constexpr float NARROW = 0.5f;      // where the polynomial of tangent() is right by itself
constexpr double FEW = 32;          // features whose rounding errors would not average out
constexpr int KEYS = 64;            // keys a block of the backward pass

enum Kind { FACTORED, SMALL, DIRECT };

INLINE V load(const float* p) { return *(const Loose*)p; }
INLINE void store(float* p, V x) { *(Loose*)p = x; }
INLINE V all(float x) { return x - V{}; }
INLINE V pick(I which, V a, V b) { return which ? a : b; }
INLINE V abs_of(V x) { return (V)((I)x & 0x7fffffff); }
// A NaN in the first argument stays.
INLINE V at_most(V x, V limit) { return pick(x > limit, limit, x); }
INLINE V at_least(V x, V limit) { return pick(x < limit, limit, x); }

INLINE V load_part(const float* p, int64_t n) {
  if (n >= L) return load(p);
  float part[L] = {};
  for (int64_t i = 0; i < n; i++) part[i] = p[i];
  return load(part);
}

INLINE float sum_of(V x) {
  float part[L];
  store(part, x);
#pragma GCC unroll 8
  for (int w = L / 2; w >= 1; w /= 2)
    for (int i = 0; i < w; i++) part[i] += part[i + w];
  return part[0];
}

// 2^shift e^(x + rest), for abs(x) up to 60 and a rest that is tiny beside it.
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

template <Kind kind>
INLINE V tangent(V x) {
  V y = x * x;
  V p = all(-5.70498872745e-3f);
  p = p * y + 2.06390887954e-2f;
  p = p * y - 5.37397155531e-2f;
  p = p * y + 1.33314422036e-1f;
  p = p * y - 3.33332819422e-1f;
  V near = x + x * (y * p);
  if (kind == SMALL) return near;
  V size = at_most(abs_of(x), all(10.0f));
  V far = 1.0f - 2.0f / (1.0f + exponential(2.0f * size, V{}, 0));
  return pick(size < 0.625f, near, (V)((I)far | ((I)x & (int32_t)0x80000000)));
}

// One problem, its batch axes flattened to one.
struct Problem {
  const float *query, *key, *v;
  const uint8_t* key_mask;  // (batch, T_enc), 0 = the key is never read; or null
  int64_t batch, T_dec, T_enc, d, padded;
};

struct Weights {
  float *lead, *ratio, *swap;  // padded; for FACTORED, see weigh()
  float* plain;                // padded with zeros
  double unit, sum;            // a power of two, and the sum of v / unit
};

// Of each pair of features the one with the larger weight leads: x/a + y/b with abs(x) >= abs(y)
// is x (b + (y/x) a) / (a b), where nothing overflows. v is scaled to a largest value near 1.
void weigh(const Problem& g, Weights& w) {
  float largest = 0;
  for (int64_t i = 0; i < g.d; i++)
    if (fabsf(g.v[i]) > largest) largest = fabsf(g.v[i]);
  int exponent = 0;
  if (isfinite(largest) && largest > 0) (void)frexpf(largest, &exponent);
  w.unit = ldexp(1.0, exponent);
  w.sum = 0;
  memset(w.plain, 0, sizeof(float) * g.padded);
  memcpy(w.plain, g.v, sizeof(float) * g.d);
  for (int64_t i = 0; i < g.padded; i += W)
    for (int64_t j = i; j < i + L; j++) {
      float x = (float)(w.plain[j] / w.unit), y = (float)(w.plain[j + L] / w.unit);
      w.sum += (double)x + y;
      bool swap = fabsf(y) > fabsf(x);
      float lead = swap ? y : x, other = swap ? x : y;
      w.swap[j] = swap ? 1.0f : 0.0f;
      w.lead[j] = lead;
      w.ratio[j] = lead == 0 ? 0 : other / lead;
    }
}

// Whether v weighs enough features for guard 4; false for a NaN or an infinity too.
bool averages(const Problem& g) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < g.d; i++) {
    const double x = fabs((double)g.v[i]);
    sum += x;
    squares += x * x;
  }
  return sum * sum >= FEW * squares && isfinite(sum);
}

// The keys of an example that may be attended.
int64_t permitted(const Problem& g, int64_t b, int64_t* rows) {
  int64_t n = 0;
  for (int64_t i = 0; i < g.T_enc; i++)
    if (!g.key_mask || g.key_mask[b * g.T_enc + i]) rows[n++] = i;
  return n;
}

struct Range {
  V low, high, poison;
};

INLINE Range range_of(const float* p, const int64_t* rows, int64_t n, int64_t d, int64_t part) {
  V x = load_part(p + (rows ? rows[0] : 0) * d, part);
  Range found = {x, x, x * 0.0f};
  for (int64_t i = 1; i < n; i++) {
    x = load_part(p + (rows ? rows[i] : i) * d, part);
    found.low = pick(x < found.low, x, found.low);
    found.high = pick(x > found.high, x, found.high);
    found.poison += x * 0.0f;  // NaN for ever after a NaN or an infinity
  }
  return found;
}

// Fill shift and limit (guards 1 and 2) and say which arithmetic is right for this example.
Kind survey(const Problem& g, int64_t b, const int64_t* rows, int64_t n, float* shift,
            float* limit) {
  V widest = {}, reach = {}, poison = {};
  for (int64_t c = 0; c < g.d; c += L) {
    const int64_t part = g.d - c;
    Range q = range_of(g.query + b * g.T_dec * g.d + c, nullptr, g.T_dec, g.d, part);
    Range k = range_of(g.key + b * g.T_enc * g.d + c, rows, n, g.d, part);
    V q_half = 0.5f * q.high - 0.5f * q.low, k_half = 0.5f * k.high - 0.5f * k.low;
    I keys_are_narrower = k_half <= q_half;
    V half = pick(keys_are_narrower, k_half, q_half);
    V middle = pick(keys_are_narrower, 0.5f * k.high + 0.5f * k.low,
                    -(0.5f * q.high + 0.5f * q.low));
    store(shift + c, middle);
    store(limit + c, half + SATURATED);
    V a = abs_of(q.low + middle), z = abs_of(q.high + middle);
    V far_q = pick(a > z, a, z);
    a = abs_of(k.low - middle), z = abs_of(k.high - middle);
    V far = far_q + pick(a > z, a, z);
    widest = pick(half > widest, half, widest);
    reach = pick(far > reach, far, reach);
    poison += q.poison + k.poison;
  }
  for (int64_t c = (g.d + L - 1) / L * L; c < g.padded; c += L) {
    store(shift + c, V{});
    store(limit + c, all(SATURATED));
  }
  float wide = 0, far = 0;
  for (int i = 0; i < L; i++) {
    if (poison[i] != 0) return DIRECT;  // true for NaN
    if (widest[i] > wide) wide = widest[i];
    if (reach[i] > far) far = reach[i];
  }
  if (far < NARROW) return SMALL;
  return wide <= WIDEST ? FACTORED : DIRECT;
}

INLINE V factor(V x, V shift, V limit) {
  V sum = x + shift, back = sum - x;
  V lost = (x - (sum - back)) + (shift - back);
  V y = at_least(at_most(sum, limit), -limit);
  return exponential(2.0f * y, 2.0f * lost, HALF_SCALE);
}

// Write features [from, to) of the given rows, W apart: factors for FACTORED, else as they are.
// Where `swap` says so the two features of a pair change places.
void fill(Kind kind, const float* source, const int64_t* rows, int64_t n, int64_t d,
          int64_t from, int64_t to, float sign, const float* shift, const float* limit,
          const float* swap, float* out) {
  for (int64_t i = 0; i < n; i++, out += to - from) {
    const float* row = source + (rows ? rows[i] : i) * d;
    for (int64_t c = from; c < to; c += W) {
      V x = d > c ? load_part(row + c, d - c) : V{};
      V y = d > c + L ? load_part(row + c + L, d - c - L) : V{};
      if (kind == FACTORED) {
        x = factor(x, sign * load(shift + c), load(limit + c));
        y = factor(y, sign * load(shift + c + L), load(limit + c + L));
        if (swap) {
          I turn = load(swap + c) > 0.5f;
          V first = pick(turn, y, x);
          y = pick(turn, x, y);
          x = first;
        }
      }
      store(out + c - from, x);
      store(out + c - from + L, y);
    }
  }
}

template <Kind kind, int Q, int N>
INLINE void score_tile(const Problem& g, const Weights& w, const float* E, const float* F,
                       const int64_t* rows, float* scores) {
  V total[Q][N] = {};
  const V one = all(SCALE);
  for (int64_t c = 0; c < g.padded; c += W) {
    V x = load((kind == FACTORED ? w.lead : w.plain) + c);
    V y = load(kind == FACTORED ? w.ratio + c : w.plain + c + L);
#pragma GCC unroll 8
    for (int k = 0; k < N; k++) {
      V f = load(F + k * g.padded + c), f2 = load(F + k * g.padded + c + L);
#pragma GCC unroll 8
      for (int q = 0; q < Q; q++) {
        V e = load(E + q * g.padded + c), e2 = load(E + q * g.padded + c + L);
        if (kind == FACTORED) {
          V a = e * f + one, b = e2 * f2 + one;
          total[q][k] += x * ((y * a + b) / (a * b));
        } else {
          total[q][k] += x * tangent<kind>(e + f) + y * tangent<kind>(e2 + f2);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int q = 0; q < Q; q++)
#pragma GCC unroll 8
    for (int k = 0; k < N; k++) {
      float found = sum_of(total[q][k]);
      if (kind == FACTORED) {
        found = (float)(w.unit * (w.sum - 2.0 * SCALE * found));
      }
      scores[q * g.T_enc + rows[k]] = found;
    }
}

template <Kind kind, int Q>
INLINE void score_rows(const Problem& g, const Weights& w, const float* E, const float* F,
                       const int64_t* rows, int64_t n, float* scores) {
  int64_t k = 0;
  for (; k + 4 <= n; k += 4)
    score_tile<kind, Q, 4>(g, w, E, F + k * g.padded, rows + k, scores);
  for (; k < n; k++) score_tile<kind, Q, 1>(g, w, E, F + k * g.padded, rows + k, scores);
}

template <Kind kind>
void score_example(const Problem& g, const Weights& w, const float* E, const float* F,
                   const int64_t* rows, int64_t n, float* scores) {
  constexpr int Q = kind == FACTORED ? REGARD_QUERIES : 1;
  int64_t q = 0;
  for (; q + Q <= g.T_dec; q += Q)
    score_rows<kind, Q>(g, w, E + q * g.padded, F, rows, n, scores + q * g.T_enc);
  for (; q < g.T_dec; q++)
    score_rows<kind, 1>(g, w, E + q * g.padded, F, rows, n, scores + q * g.T_enc);
}

// For Q queries and up to KEYS keys: add sums of grad (1 - h^2) to d_q and d_k, and sums of
// grad h to d_v, where h is the tangent; its negative where FACTORED, 2 r - 1.
template <Kind kind, int Q>
INLINE void gradient_block(const float* E, const float* F, const float* grad, int64_t n,
                           int64_t stride, float* d_q, float* d_k, double* d_v) {
  const V one = all(SCALE), two = all(2 * SCALE);
  V e[Q], e2[Q], by_q[Q] = {}, by_q2[Q] = {}, by_v = {}, by_v2 = {};
#pragma GCC unroll 4
  for (int q = 0; q < Q; q++) e[q] = load(E + q * W), e2[q] = load(E + q * W + L);
  for (int64_t k = 0; k < n; k++) {
    V f = load(F + k * W), f2 = load(F + k * W + L);
    V by_k = load(d_k + k * W), by_k2 = load(d_k + k * W + L);
#pragma GCC unroll 4
    for (int q = 0; q < Q; q++) {
      V h, h2, s = all(grad[q * stride + k]);
      if (kind == FACTORED) {
        V a = e[q] * f + one, b = e2[q] * f2 + one;
        V inverse = two / (a * b);
        h = inverse * b - 1.0f;
        h2 = inverse * a - 1.0f;
      } else {
        h = tangent<kind>(e[q] + f);
        h2 = tangent<kind>(e2[q] + f2);
      }
      V sh = s * h, sh2 = s * h2;
      V slope = s - sh * h, slope2 = s - sh2 * h2;
      by_q[q] += slope;
      by_q2[q] += slope2;
      by_k += slope;
      by_k2 += slope2;
      by_v += sh;
      by_v2 += sh2;
    }
    store(d_k + k * W, by_k);
    store(d_k + k * W + L, by_k2);
  }
#pragma GCC unroll 4
  for (int q = 0; q < Q; q++) {
    store(d_q + q * W, load(d_q + q * W) + by_q[q]);
    store(d_q + q * W + L, load(d_q + q * W + L) + by_q2[q]);
  }
  for (int i = 0; i < L; i++) d_v[i] += by_v[i], d_v[L + i] += by_v2[i];
}

template <Kind kind>
void gradient_chunk(int64_t T_dec, int64_t n, const float* E, const float* F,
                    const float* grad, float* d_q, float* d_k, double* d_v) {
  // Keys in blocks: they stay in the first cache, and no sum in float32 grows long.
  for (int64_t k = 0; k < n; k += KEYS) {
    constexpr int Q = REGARD_QUERIES;
    int64_t m = n - k < KEYS ? n - k : KEYS, q = 0;
    for (; q + Q <= T_dec; q += Q)
      gradient_block<kind, Q>(E + q * W, F + k * W, grad + q * n + k, m, n, d_q + q * W,
                              d_k + k * W, d_v);
    for (; q < T_dec; q++)
      gradient_block<kind, 1>(E + q * W, F + k * W, grad + q * n + k, m, n, d_q + q * W,
                              d_k + k * W, d_v);
  }
}

struct Arena {
  char* next;
  void* take(size_t bytes) {
    void* found = next;
    next += (bytes + 63) / 64 * 64;
    return found;
  }
  float* floats(int64_t n) { return (float*)take(sizeof(float) * n); }
};

Arena arena(size_t bytes, void** owner) {
  *owner = malloc(bytes + 4096);  // 4096: every array is rounded up to 64
  return {(char*)(((uintptr_t)*owner + 63) / 64 * 64)};
}

}  // namespace

extern "C" __attribute__((visibility("hidden"))) int JOIN(regard_forward_, REGARD_VARIANT)(
    const float* query, const float* key, const float* v, const uint8_t* key_mask,
    float* scores, int64_t batch, int64_t T_dec, int64_t T_enc, int64_t d) {
  Problem g = {query, key, v, key_mask, batch, T_dec, T_enc, d, (d + W - 1) / W * W};
  void* owner;
  Arena memory = arena(sizeof(float) * g.padded * (T_dec + T_enc + 6) + 8 * T_enc, &owner);
  if (!owner) return 1;
  float *E = memory.floats(T_dec * g.padded), *F = memory.floats(T_enc * g.padded);
  float *shift = memory.floats(g.padded), *limit = memory.floats(g.padded);
  int64_t* rows = (int64_t*)memory.take(8 * T_enc);
  Weights w;
  w.lead = memory.floats(g.padded), w.ratio = memory.floats(g.padded);
  w.swap = memory.floats(g.padded), w.plain = memory.floats(g.padded);
  weigh(g, w);
  const bool many = averages(g);
  for (int64_t b = 0; b < batch; b++) {
    float* out = scores + b * T_dec * T_enc;
    int64_t n = permitted(g, b, rows);
    if (n < T_enc) memset(out, 0, sizeof(float) * T_dec * T_enc);
    if (n == 0 || T_dec == 0) continue;
    Kind kind = survey(g, b, rows, n, shift, limit);
    if (kind == FACTORED && !many) kind = DIRECT;
    fill(kind, query + b * T_dec * d, nullptr, T_dec, d, 0, g.padded, 1, shift, limit, w.swap,
         E);
    fill(kind, key + b * T_enc * d, rows, n, d, 0, g.padded, -1, shift, limit, w.swap, F);
    if (kind == FACTORED) score_example<FACTORED>(g, w, E, F, rows, n, out);
    if (kind == SMALL) score_example<SMALL>(g, w, E, F, rows, n, out);
    if (kind == DIRECT) score_example<DIRECT>(g, w, E, F, rows, n, out);
  }
  free(owner);
  return 0;
}

extern "C" __attribute__((visibility("hidden"))) int JOIN(regard_backward_, REGARD_VARIANT)(
    const float* query, const float* key, const float* v, const uint8_t* key_mask,
    const float* grad, float* d_query, float* d_key, float* d_v, int64_t batch, int64_t T_dec,
    int64_t T_enc, int64_t d) {
  Problem g = {query, key, v, key_mask, batch, T_dec, T_enc, d, (d + W - 1) / W * W};
  void* owner;
  Arena memory = arena(sizeof(float) * (2 * W * (T_dec + T_enc) + T_dec * T_enc) +
                           (sizeof(double) * 2 + 8) * g.padded + 8 * T_enc,
                       &owner);
  if (!owner) return 1;
  float *E = memory.floats(T_dec * W), *F = memory.floats(T_enc * W);
  float *by_q = memory.floats(T_dec * W), *by_k = memory.floats(T_enc * W);
  float* upstream = memory.floats(T_dec * T_enc);
  float *shift = memory.floats(g.padded), *limit = memory.floats(g.padded);
  double* by_v = (double*)memory.take(sizeof(double) * W);
  double* total_v = (double*)memory.take(sizeof(double) * g.padded);
  int64_t* rows = (int64_t*)memory.take(8 * T_enc);
  for (int64_t i = 0; i < g.padded; i++) total_v[i] = 0;
  const bool many = averages(g);
  memset(d_query, 0, sizeof(float) * batch * T_dec * d);
  memset(d_key, 0, sizeof(float) * batch * T_enc * d);
  for (int64_t b = 0; b < batch; b++) {
    int64_t n = permitted(g, b, rows);
    if (n == 0 || T_dec == 0) continue;
    const float *q_b = query + b * T_dec * d, *k_b = key + b * T_enc * d;
    Kind kind = survey(g, b, rows, n, shift, limit);
    if (kind == FACTORED && !many) kind = DIRECT;
    for (int64_t t = 0; t < T_dec; t++)
      for (int64_t i = 0; i < n; i++)
        upstream[t * n + i] = grad[(b * T_dec + t) * T_enc + rows[i]];
    const double turn = kind == FACTORED ? -1 : 1;  // see gradient_block
    for (int64_t c = 0; c < d; c += W) {
      fill(kind, q_b, nullptr, T_dec, d, c, c + W, 1, shift, limit, nullptr, E);
      fill(kind, k_b, rows, n, d, c, c + W, -1, shift, limit, nullptr, F);
      memset(by_q, 0, sizeof(float) * T_dec * W);
      memset(by_k, 0, sizeof(float) * n * W);
      for (int i = 0; i < W; i++) by_v[i] = 0;
      if (kind == FACTORED) gradient_chunk<FACTORED>(T_dec, n, E, F, upstream, by_q, by_k, by_v);
      if (kind == SMALL) gradient_chunk<SMALL>(T_dec, n, E, F, upstream, by_q, by_k, by_v);
      if (kind == DIRECT) gradient_chunk<DIRECT>(T_dec, n, E, F, upstream, by_q, by_k, by_v);
      const int64_t part = d - c < W ? d - c : W;
      for (int64_t i = 0; i < part; i++) total_v[c + i] += turn * by_v[i];
      for (int64_t t = 0; t < T_dec; t++)
        for (int64_t i = 0; i < part; i++)
          d_query[(b * T_dec + t) * d + c + i] = v[c + i] * by_q[t * W + i];
      for (int64_t k = 0; k < n; k++)
        for (int64_t i = 0; i < part; i++)
          d_key[(b * T_enc + rows[k]) * d + c + i] = v[c + i] * by_k[k * W + i];
    }
  }
  for (int64_t i = 0; i < d; i++) d_v[i] = (float)total_v[i];
  free(owner);
  return 0;
}
