// Which build of additive.cpp runs on this processor. This is the library's whole interface.

#include <stdint.h>

#define EXPORT extern "C" __attribute__((visibility("default")))
#define FORWARD(name)                                                                         \
  extern "C" int regard_forward_##name(const float*, const float*, const float*,              \
                                       const uint8_t*, float*, int64_t, int64_t, int64_t,     \
                                       int64_t);                                              \
  extern "C" int regard_backward_##name(const float*, const float*, const float*,             \
                                        const uint8_t*, const float*, float*, float*, float*, \
                                        int64_t, int64_t, int64_t, int64_t);

FORWARD(plain)
#if defined(__x86_64__)
FORWARD(avx2)
FORWARD(avx512)
#endif

namespace {
constexpr int OUT_OF_MEMORY = 1, UNSUPPORTED = 2;
static_assert(OUT_OF_MEMORY == 1, "the status that additive.cpp returns");
enum Variant { PLAIN = 0, AVX2 = 1, AVX512 = 2 };
}  // namespace

// Counts changes of this interface; the loader refuses a library of another count.
EXPORT int regard_interface() { return 1; }

EXPORT int regard_supports(int variant) {
  if (variant == PLAIN) return 1;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (variant == AVX2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (variant == AVX512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
#endif
  return 0;
}

// The variant must be one that regard_supports() has confirmed.
EXPORT int regard_forward(int variant, const float* query, const float* key, const float* v,
                          const uint8_t* key_mask, float* scores, int64_t batch, int64_t T_dec,
                          int64_t T_enc, int64_t d) {
#if defined(__x86_64__)
  if (variant == AVX512)
    return regard_forward_avx512(query, key, v, key_mask, scores, batch, T_dec, T_enc, d);
  if (variant == AVX2)
    return regard_forward_avx2(query, key, v, key_mask, scores, batch, T_dec, T_enc, d);
#endif
  if (variant != PLAIN) return UNSUPPORTED;
  return regard_forward_plain(query, key, v, key_mask, scores, batch, T_dec, T_enc, d);
}

EXPORT int regard_backward(int variant, const float* query, const float* key, const float* v,
                           const uint8_t* key_mask, const float* grad, float* d_query,
                           float* d_key, float* d_v, int64_t batch, int64_t T_dec,
                           int64_t T_enc, int64_t d) {
#if defined(__x86_64__)
  if (variant == AVX512)
    return regard_backward_avx512(query, key, v, key_mask, grad, d_query, d_key, d_v, batch,
                                  T_dec, T_enc, d);
  if (variant == AVX2)
    return regard_backward_avx2(query, key, v, key_mask, grad, d_query, d_key, d_v, batch,
                                T_dec, T_enc, d);
#endif
  if (variant != PLAIN) return UNSUPPORTED;
  return regard_backward_plain(query, key, v, key_mask, grad, d_query, d_key, d_v, batch, T_dec,
                               T_enc, d);
}
