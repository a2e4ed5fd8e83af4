// Scores of all pairs:
//
//     scores[b, t, i] = sum_d v[d] tanh(query[b, t, d] + key[b, i, d])

#pragma once

#include "prepare.h"
#include "workers.h"

namespace {

// Sums of v r for two features each: their common denominator, and what stands above it.
struct Fraction {
  V above, below;
};

INLINE Fraction pair_of(const float* e, V f, V f2, V lead, V one, V other) {
  const V a = load(e) * f + lead, b = load(e + L) * f2 + one;
  return {other * a + b, a * b};
}

// Where scores go: the one of query q and key k to scores[q * stride + at[k]].
struct Target {
  float* scores;
  int64_t stride;
  const int64_t* at;
};

// Scores of Q queries and N keys. E holds the queries' vectors side by side.
template <Kind kind, int Q, int N>
INLINE void score_tile(const Problem& g, const Weights& w, const float* E, const float* F,
                       int64_t first, const Target& out) {
  constexpr bool factored = kind == FACTORED || kind == QUADS;
  constexpr float scale = kind == QUADS ? QUARTER_SCALE : SCALE;
  const V one = all(scale), start = factored ? load(w.start) * (1 / scale) : V{};
  V total[Q * N];
#pragma GCC unroll 8
  for (int i = 0; i < Q * N; i++) total[i] = start;
  const float* share = kind == QUADS ? w.four : w.two;
  int64_t c = 0;
  if (kind == QUADS)
    for (; c + 2 * W <= g.padded; c += 2 * W, E += 2 * Q * W) {
      const V lead = load(share + c), lead2 = load(share + c + W);
      const V other = load(w.other + c), other2 = load(w.other + c + W);
#pragma GCC unroll 8
      for (int k = 0; k < N; k++) {
        const float* p = F + k * g.padded + c;
        const V f = load(p), f2 = load(p + L), f3 = load(p + W), f4 = load(p + W + L);
#pragma GCC unroll 8
        for (int q = 0; q < Q; q++) {
          const Fraction x = pair_of(E + q * W, f, f2, lead, one, other);
          const Fraction y = pair_of(E + (Q + q) * W, f3, f4, lead2, one, other2);
          total[q * N + k] += ratio(x.above * y.below + y.above * x.below, x.below * y.below);
        }
      }
    }
  for (; c < g.padded; c += W, E += Q * W) {
    const V lead = load((factored ? share : w.plain) + c);
    const V other = load((factored ? w.other : w.plain + L) + c);
#pragma GCC unroll 8
    for (int k = 0; k < N; k++) {
      const V f = load(F + k * g.padded + c), f2 = load(F + k * g.padded + c + L);
#pragma GCC unroll 8
      for (int q = 0; q < Q; q++) {
        const float* e = E + q * W;
        if (factored) {
          const Fraction x = pair_of(e, f, f2, lead, one, other);
          total[q * N + k] += ratio(x.above, x.below);
        } else {
          total[q * N + k] +=
              lead * tangent_of<kind>(load(e) + f) + other * tangent_of<kind>(load(e + L) + f2);
        }
      }
    }
  }
  float found[Q * N];
  sums_of<Q * N>(total, found);
  if (factored)
#pragma GCC unroll 8
    for (int i = 0; i < Q * N; i++)
      found[i] = (float)(w.unit * (w.sum - 2.0 * scale * found[i]));
#pragma GCC unroll 8
  for (int q = 0; q < Q; q++)
#pragma GCC unroll 8
    for (int k = 0; k < N; k++)
      out.scores[q * out.stride + out.at[first + k]] = found[q * N + k];
}

template <Kind kind, int Q, int N>
void score_rows(const Problem& g, const Weights& w, const float* E, const float* F,
                int64_t n, const Target& out) {
  int64_t k = 0;
  for (; k + N <= n; k += N) score_tile<kind, Q, N>(g, w, E, F + k * g.padded, k, out);
  for (; k < n; k++) score_tile<kind, Q, 1>(g, w, E, F + k * g.padded, k, out);
}

// Queries that are scored together. With one key at a time, whose factors stay in registers.
constexpr int MOST_QUERIES = 2 * REGARD_QUERIES;

int64_t queries_at_once(Kind kind, int64_t left) {
  if (kind != FACTORED && kind != QUADS) return 1;
  if (left >= MOST_QUERIES) return MOST_QUERIES;
  return left >= MOST_QUERIES / 2 ? MOST_QUERIES / 2 : 1;
}

template <Kind kind>
void score_block(const Problem& g, const Weights& w, const float* E, const float* F,
                 int64_t n, int64_t queries, const Target& out) {
  if ((kind == FACTORED || kind == QUADS) && queries == MOST_QUERIES)
    return score_rows<kind, MOST_QUERIES, 1>(g, w, E, F, n, out);
  if ((kind == FACTORED || kind == QUADS) && queries > 1)
    return score_rows<kind, MOST_QUERIES / 2, 1>(g, w, E, F, n, out);
  score_rows<kind, 1, 4>(g, w, E, F, n, out);
}

// Score the queries [from, to) of all examples' queries in a row. The sink is told of each
// example and its n permitted keys, says where the scores of m queries go, and hears when they
// are there.
template <typename Sink>
bool score_part(const Problem& g, const Weights& w, int64_t most, int64_t from, int64_t to,
                Sink& sink) {
  Arena memory(sizeof(float) * g.padded * (MOST_QUERIES + most + 2) +
               sizeof(int64_t) * g.T_enc);
  if (!memory) return false;
  float* E = memory.take<float>(MOST_QUERIES * g.padded);
  float* F = memory.take<float>(most * g.padded);
  float *shift = memory.take<float>(g.padded), *limit = memory.take<float>(g.padded);
  int64_t* rows = memory.take<int64_t>(g.T_enc);
  const int64_t* every = nullptr;
  for (int64_t b = from / g.T_dec; b * g.T_dec < to; b++) {
    const int64_t begin = from > b * g.T_dec ? from - b * g.T_dec : 0;
    const int64_t end = to < (b + 1) * g.T_dec ? to - b * g.T_dec : g.T_dec;
    int64_t n = permitted(g.key_mask ? g.key_mask + b * g.T_enc : nullptr, g.T_enc, rows);
    sink.example(b, begin, end, rows, n);
    if (n == 0) continue;
    const float *q_b = g.query + b * g.T_dec * g.d, *k_b = g.key + b * g.T_enc * g.d;
    const Kind kind = kind_of_scores(survey(g, b, rows, n, shift, limit), w);
    fill(kind, k_b, rows, n, g.d, 0, g.padded, -1, shift, limit, {w.swap, nullptr}, F,
         {g.padded, W});
    for (int64_t t = begin, m; t < end; t += m) {
      m = queries_at_once(kind, end - t);
      fill(kind, q_b + t * g.d, every, m, g.d, 0, g.padded, 1, shift, limit,
           {w.swap, w.inverse}, E, {W, m * W});
      const Target out = sink.target(t);
      if (kind == QUADS) score_block<QUADS>(g, w, E, F, n, m, out);
      if (kind == FACTORED) score_block<FACTORED>(g, w, E, F, n, m, out);
      if (kind == SMALL) score_block<SMALL>(g, w, E, F, n, m, out);
      if (kind == DIRECT) score_block<DIRECT>(g, w, E, F, n, m, out);
      sink.scored(t, m);
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

// Weights, ready for one call.
bool weigh_all(const Problem& g, Arena& memory, Weights& w) {
  if (!memory) return false;
  w.inverse = memory.take<float>(g.padded), w.other = memory.take<float>(g.padded);
  w.two = memory.take<float>(g.padded), w.four = memory.take<float>(g.padded);
  w.swap = memory.take<float>(g.padded), w.plain = memory.take<float>(g.padded);
  weigh(g, w);
  return true;
}

size_t weights_size(const Problem& g) { return sizeof(float) * g.padded * 6; }

// Scores as they are; those of keys that are not permitted are 0.
struct Plain {
  const Problem& g;
  float *scores, *own;
  const int64_t* rows;

  void example(int64_t b, int64_t begin, int64_t end, const int64_t* permitted, int64_t n) {
    own = scores + b * g.T_dec * g.T_enc;
    rows = permitted;
    if (n < g.T_enc) clear(own + begin * g.T_enc, (end - begin) * g.T_enc);
  }
  Target target(int64_t t) const { return {own + t * g.T_enc, g.T_enc, rows}; }
  void scored(int64_t, int64_t) const {}
};

int forward(const float* query, const float* key, const float* v, const uint8_t* key_mask,
            float* scores, int64_t batch, int64_t T_dec, int64_t T_enc, int64_t d,
            int threads) {
  const Problem g = {query, key, v, key_mask, batch, T_dec, T_enc, d, (d + W - 1) / W * W};
  if (batch == 0 || T_dec == 0 || T_enc == 0) return 0;
  Arena memory(weights_size(g));
  Weights w;
  if (!weigh_all(g, memory, w)) return 1;
  const int64_t most = most_permitted(g);
  return in_parts(batch * T_dec, threads, [&](int64_t from, int64_t to) {
    Plain sink = {g, scores, nullptr, nullptr};
    return score_part(g, w, most, from, to, sink);
  }) ? 0 : 1;
}

}  // namespace
