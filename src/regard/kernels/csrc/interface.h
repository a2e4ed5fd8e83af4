// What the library computes, as each build of additive.cpp offers it to dispatch.cpp. All arrays
// are contiguous unless a stride is named, and float32 unless a type is. Functions return 0, or
// 1 where there was no memory.

#pragma once

#include <stdint.h>

// Features of prepared rows are padded to a multiple of this, whatever the instruction set.
#define REGARD_PAD 32

// One batch's keys, made ready once for any number of decoder steps.
struct Keys {
  int64_t batch, T_enc, d, padded;
  const float* key;  // (batch, T_enc, d), as they came; only permitted rows are read
  // Of each example's permitted keys, in their order, from here on:
  float* factor;          // (batch, T_enc, padded): e^{2 (key - shift)}, scaled
  float *shift, *limit;   // (batch, padded)
  float* reach;           // (batch): the largest abs(key - shift)
  int64_t* counts;        // (batch): how many are permitted
  int32_t* rows;          // (batch, T_enc): which
  uint8_t* kinds;         // (batch): the arithmetic that is right for them
};

// One decoder step: one query an example.
struct Step {
  const Keys* keys;
  const float* v;      // (d)
  const float* value;  // (batch, T_enc, d_v)
  int64_t d_v;
};

// What is to be read with the weights of many queries.
struct Attention {
  const float* value;   // (batch, T_enc, d_v)
  int64_t d_v;
  const uint8_t* mask;  // (batch, T_dec, T_enc), 0 = may not attend; or null
  float* weights;       // (batch, T_dec, T_enc), written; or null
  float* context;       // (batch, T_dec, d_v), written
};

// What all steps of one GRU share.
struct Gru {
  const float* bias;      // (3 d_s): the state's half
  int64_t batch, d_s;
  int64_t input_stride;   // between the rows of from_input (batch, 3 d_s)
  int64_t state_stride;   // between the rows of from_state (batch, 3 d_s) and its gradient
};

struct Functions {
  int (*forward)(const float* query, const float* key, const float* v, const uint8_t* key_mask,
                 float* scores, int64_t batch, int64_t T_dec, int64_t T_enc, int64_t d,
                 int threads);
  int (*backward)(const float* query, const float* key, const float* v,
                  const uint8_t* key_mask, const float* grad, float* d_query, float* d_key,
                  float* d_v, int64_t batch, int64_t T_dec, int64_t T_enc, int64_t d,
                  int threads);
  int (*attend)(const float* query, const float* key, const float* v, const uint8_t* key_mask,
                const Attention* asked, int64_t batch, int64_t T_dec, int64_t T_enc, int64_t d,
                int threads);
  // grad comes in by weights (rows, n) and goes out by their scores.
  void (*softmax_backward)(const float* weights, float* grad, int64_t rows, int64_t n);
  int (*prepare)(const Keys* keys, const uint8_t* key_mask, int threads);
  int (*step_forward)(const Step* step, const float* query, int64_t query_stride,
                      float* factors, uint8_t* kinds, float* scores, float* weights,
                      float* context, int threads);
  int (*step_backward)(const Step* step, const float* factors, const uint8_t* kinds,
                       const float* weights, const float* d_context, const float* d_weights,
                       int64_t d_weights_stride, float* d_scores, float* d_query,
                       int64_t d_query_stride, int threads);
  // Writes gates (batch, 3 d_s), which are r, z and n, and after (batch, d_s). from_context is
  // (batch, 3 d_s), state (batch, d_s).
  void (*gru_forward)(const Gru* gru, const float* from_input, const float* from_context,
                      const float* from_state, const float* state, float* gates, float* after);
  // d_state (batch, d_s) comes in as what later steps want of this one's result, d_output being
  // added if it is not null, and goes out as the part that passes the gates by. Writes d_input
  // (batch, 3 d_s) and d_from_state.
  void (*gru_backward)(const Gru* gru, const float* d_output, int64_t d_output_stride,
                       const float* gates, const float* from_state, const float* state,
                       float* d_input, float* d_from_state, float* d_state);
};
