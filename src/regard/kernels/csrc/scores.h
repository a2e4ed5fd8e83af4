// Scores of all pairs:
//
//     scores[b, t, i] = sum_d v[d] tanh(query[b, t, d] + key[b, i, d])

#pragma once

#include "prepare.h"
#include "workers.h"

namespace {

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
          total[q][k] += x * quotient(y * a + b, a * b);
        } else {
          total[q][k] += x * tangent_of<kind>(e + f) + y * tangent_of<kind>(e2 + f2);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int q = 0; q < Q; q++)
#pragma GCC unroll 8
    for (int k = 0; k < N; k++) {
      float found = sum_of(total[q][k]);
      if (kind == FACTORED) found = (float)(w.unit * (w.sum - 2.0 * SCALE * found));
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
void score_block(const Problem& g, const Weights& w, const float* E, const float* F,
                 const int64_t* rows, int64_t n, int64_t queries, float* scores) {
  constexpr int Q = kind == FACTORED ? REGARD_QUERIES : 1;
  int64_t q = 0;
  for (; q + Q <= queries; q += Q)
    score_rows<kind, Q>(g, w, E + q * g.padded, F, rows, n, scores + q * g.T_enc);
  for (; q < queries; q++)
    score_rows<kind, 1>(g, w, E + q * g.padded, F, rows, n, scores + q * g.T_enc);
}

// Queries whose factors are made at once: the memory for them does not grow with T_dec.
constexpr int64_t QUERIES = 64;

// Score the queries [from, to) of all examples' queries in a row.
bool score_part(const Problem& g, const Weights& w, int64_t most, int64_t from, int64_t to,
                float* scores) {
  Arena memory(sizeof(float) * g.padded * (QUERIES + most + 2) + sizeof(int64_t) * g.T_enc);
  if (!memory) return false;
  float *E = memory.take<float>(QUERIES * g.padded), *F = memory.take<float>(most * g.padded);
  float *shift = memory.take<float>(g.padded), *limit = memory.take<float>(g.padded);
  int64_t* rows = memory.take<int64_t>(g.T_enc);
  const int64_t* every = nullptr;
  for (int64_t b = from / g.T_dec; b * g.T_dec < to; b++) {
    const int64_t begin = from > b * g.T_dec ? from - b * g.T_dec : 0;
    const int64_t end = to < (b + 1) * g.T_dec ? to - b * g.T_dec : g.T_dec;
    float* out = scores + (b * g.T_dec + begin) * g.T_enc;
    int64_t n = permitted(g.key_mask ? g.key_mask + b * g.T_enc : nullptr, g.T_enc, rows);
    if (n < g.T_enc) clear(out, (end - begin) * g.T_enc);
    if (n == 0) continue;
    const float *q_b = g.query + b * g.T_dec * g.d, *k_b = g.key + b * g.T_enc * g.d;
    const Kind kind = survey(g, w, b, rows, n, shift, limit);
    fill(kind, k_b, rows, n, g.d, 0, g.padded, -1, shift, limit, w.swap, F, g.padded);
    for (int64_t t = begin; t < end; t += QUERIES) {
      const int64_t m = end - t < QUERIES ? end - t : QUERIES;
      fill(kind, q_b + t * g.d, every, m, g.d, 0, g.padded, 1, shift, limit, w.swap, E,
           g.padded);
      if (kind == FACTORED) score_block<FACTORED>(g, w, E, F, rows, n, m, out);
      if (kind == SMALL) score_block<SMALL>(g, w, E, F, rows, n, m, out);
      if (kind == DIRECT) score_block<DIRECT>(g, w, E, F, rows, n, m, out);
      out += m * g.T_enc;
    }
  }
  return true;
}

// The keys of the example that has the most of them.
int64_t most_permitted(const Problem& g) {
  if (!g.key_mask) return g.T_enc;
  int64_t most = 0;
  for (int64_t b = 0; b < g.batch; b++) {
    int64_t n = 0;
    for (int64_t i = 0; i < g.T_enc; i++) n += g.key_mask[b * g.T_enc + i] != 0;
    if (n > most) most = n;
  }
  return most;
}

int forward(const float* query, const float* key, const float* v, const uint8_t* key_mask,
            float* scores, int64_t batch, int64_t T_dec, int64_t T_enc, int64_t d,
            int threads) {
  const Problem g = {query, key, v, key_mask, batch, T_dec, T_enc, d, (d + W - 1) / W * W};
  if (batch == 0 || T_dec == 0 || T_enc == 0) return 0;
  Arena memory(sizeof(float) * g.padded * 4);
  if (!memory) return 1;
  Weights w;
  w.lead = memory.take<float>(g.padded), w.ratio = memory.take<float>(g.padded);
  w.swap = memory.take<float>(g.padded), w.plain = memory.take<float>(g.padded);
  weigh(g, w);
  const int64_t most = most_permitted(g);
  return in_parts(batch * T_dec, threads, [&](int64_t from, int64_t to) {
    return score_part(g, w, most, from, to, scores);
  }) ? 0 : 1;
}

}  // namespace
