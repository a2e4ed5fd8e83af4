// Which build of additive.cpp runs on this processor. This is the library's whole interface.

#include "interface.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

#define HIDDEN extern const __attribute__((visibility("hidden"))) Functions

HIDDEN regard_plain;
#if defined(__x86_64__)
HIDDEN regard_avx2;
HIDDEN regard_avx512;
HIDDEN regard_avx512r;
#endif

namespace {

enum Variant { PLAIN, AVX2, AVX512, AVX512R };  // AVX512R: with approximate reciprocals
constexpr int UNSUPPORTED = 2;

// The variant must be one that regard_supports() has confirmed.
const Functions* functions(int variant) {
  if (variant == PLAIN) return &regard_plain;
#if defined(__x86_64__)
  if (variant == AVX2) return &regard_avx2;
  if (variant == AVX512) return &regard_avx512;
  if (variant == AVX512R) return &regard_avx512r;
#endif
  return nullptr;
}

}  // namespace

// Counts changes of this interface; the loader refuses a library of another count.
EXPORT int regard_interface() { return 3; }

EXPORT int regard_supports(int variant) {
  if (variant == PLAIN) return 1;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (variant == AVX2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (variant == AVX512 || variant == AVX512R)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
#endif
  return 0;
}

// The fastest variant here. A division of sixteen numbers takes Intel's processors ten cycles and
// AMD's six, in which they do as many of the other operations as the approximation needs.
EXPORT int regard_best() {
#if defined(__x86_64__)
  if (regard_supports(AVX512)) return __builtin_cpu_is("intel") ? AVX512R : AVX512;
  if (regard_supports(AVX2)) return AVX2;
#endif
  return PLAIN;
}

// Features of a prepared row, for d of them.
EXPORT int64_t regard_padded(int64_t d) { return (d + REGARD_PAD - 1) / REGARD_PAD * REGARD_PAD; }

EXPORT int regard_forward(int variant, const float* query, const float* key, const float* v,
                          const uint8_t* key_mask, float* scores, int64_t batch, int64_t T_dec,
                          int64_t T_enc, int64_t d, int threads) {
  const Functions* found = functions(variant);
  if (!found) return UNSUPPORTED;
  return found->forward(query, key, v, key_mask, scores, batch, T_dec, T_enc, d, threads);
}

EXPORT int regard_backward(int variant, const float* query, const float* key, const float* v,
                           const uint8_t* key_mask, const float* grad, float* d_query,
                           float* d_key, float* d_v, int64_t batch, int64_t T_dec,
                           int64_t T_enc, int64_t d, int threads) {
  const Functions* found = functions(variant);
  if (!found) return UNSUPPORTED;
  return found->backward(query, key, v, key_mask, grad, d_query, d_key, d_v, batch, T_dec,
                         T_enc, d, threads);
}

EXPORT int regard_attend(int variant, const float* query, const float* key, const float* v,
                         const uint8_t* key_mask, const Attention* asked, int64_t batch,
                         int64_t T_dec, int64_t T_enc, int64_t d, int threads) {
  const Functions* found = functions(variant);
  if (!found) return UNSUPPORTED;
  return found->attend(query, key, v, key_mask, asked, batch, T_dec, T_enc, d, threads);
}

EXPORT int regard_softmax_backward(int variant, const float* weights, float* grad,
                                   int64_t rows, int64_t n) {
  const Functions* found = functions(variant);
  if (!found) return UNSUPPORTED;
  found->softmax_backward(weights, grad, rows, n);
  return 0;
}

EXPORT int regard_prepare(int variant, const Keys* keys, const uint8_t* key_mask,
                          int threads) {
  const Functions* found = functions(variant);
  return found ? found->prepare(keys, key_mask, threads) : UNSUPPORTED;
}

EXPORT int regard_step_forward(int variant, const Step* step, const float* query,
                               int64_t query_stride, float* factors, uint8_t* kinds,
                               float* scores, float* weights, float* context, int threads) {
  const Functions* found = functions(variant);
  if (!found) return UNSUPPORTED;
  return found->step_forward(step, query, query_stride, factors, kinds, scores, weights,
                             context, threads);
}

EXPORT int regard_step_backward(int variant, const Step* step, const float* factors,
                                const uint8_t* kinds, const float* weights,
                                const float* d_context, const float* d_weights,
                                int64_t d_weights_stride, float* d_scores, float* d_query,
                                int64_t d_query_stride, int threads) {
  const Functions* found = functions(variant);
  if (!found) return UNSUPPORTED;
  return found->step_backward(step, factors, kinds, weights, d_context, d_weights,
                              d_weights_stride, d_scores, d_query, d_query_stride, threads);
}

EXPORT int regard_gru_forward(int variant, const Gru* gru, const float* from_input,
                              const float* from_context, const float* from_state,
                              const float* state, float* gates, float* after) {
  const Functions* found = functions(variant);
  if (!found) return UNSUPPORTED;
  found->gru_forward(gru, from_input, from_context, from_state, state, gates, after);
  return 0;
}

EXPORT int regard_gru_backward(int variant, const Gru* gru, const float* d_output,
                               int64_t d_output_stride, const float* gates,
                               const float* from_state, const float* state, float* d_input,
                               float* d_from_state, float* d_state) {
  const Functions* found = functions(variant);
  if (!found) return UNSUPPORTED;
  found->gru_backward(gru, d_output, d_output_stride, gates, from_state, state, d_input,
                      d_from_state, d_state);
  return 0;
}
