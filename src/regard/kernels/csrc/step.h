// One decoder step on prepared keys: scores, masked softmax and context of one query an example,
// in one pass, and the gradient by the query.
//
// A decoder asks the same keys at every step. Their half of the exponentials is made once, in
// prepare(), before any query is known: so keys are centred on their own middle, and an example
// whose keys lie too far apart takes the tangent for each pair even where the queries would
// not. The gradients by keys and v are left to backward(), for all steps at once.

#pragma once

#include "interface.h"
#include "prepare.h"
#include "softmax.h"
#include "workers.h"

namespace {

static_assert(REGARD_PAD % W == 0, "a prepared row must be whole vectors for every build");

void prepare_example(const Keys& g, int64_t b, const uint8_t* key_mask) {
  int32_t* rows = g.rows + b * g.T_enc;
  const int64_t n = permitted(key_mask ? key_mask + b * g.T_enc : nullptr, g.T_enc, rows);
  g.counts[b] = n;
  g.reach[b] = 0;
  g.kinds[b] = DIRECT;
  float *shift = g.shift + b * g.padded, *limit = g.limit + b * g.padded;
  if (n == 0) {
    clear(shift, g.padded);
    clear(limit, g.padded);
    return;
  }
  const float* key = g.key + b * g.T_enc * g.d;
  V widest = {}, poison = {};
  for (int64_t c = 0; c < g.padded; c += L) {
    V middle = {}, half = {};
    if (c < g.d) {
      Range k;
      ranges_of<1>(key + c, rows, n, g.d, g.d - c, &k);
      half = 0.5f * k.high - 0.5f * k.low;
      middle = 0.5f * k.high + 0.5f * k.low;
      poison += k.poison;
    }
    store(shift + c, middle);
    store(limit + c, half + SATURATED);
    widest = pick(half > widest, half, widest);
  }
  g.reach[b] = largest_of(widest);
  if (poisoned(poison) || g.reach[b] > WIDEST) return;
  g.kinds[b] = FACTORED;
  fill(FACTORED, key, rows, n, g.d, 0, g.padded, -1, shift, limit, {},
       g.factor + b * g.T_enc * g.padded, {g.padded, W});
}

int prepare(const Keys* keys, const uint8_t* key_mask, int threads) {
  in_parts(keys->batch, threads, [&](int64_t from, int64_t to) {
    for (int64_t b = from; b < to; b++) prepare_example(*keys, b, key_mask);
    return true;
  });
  return 0;
}

// v, padded with zeros, and divided by a power of two for FACTORED.
struct StepWeights {
  float *plain, *scaled;
  double unit, sum;
  bool many;
};

StepWeights weigh_step(const Step& s, Arena& memory) {
  const int64_t d = s.keys->d, padded = s.keys->padded;
  StepWeights w = {memory.take<float>(padded), memory.take<float>(padded), unit_of(s.v, d), 0,
                   averages(s.v, d)};
  const float inverse = (float)(1 / w.unit);
  for (int64_t i = 0; i < padded; i++) {
    w.plain[i] = i < d ? s.v[i] : 0;
    // A unit below 2^-127 has no inverse in float32; such weights are few, or all tiny.
    w.scaled[i] = isfinite(inverse) ? w.plain[i] * inverse : (float)(w.plain[i] / w.unit);
    w.sum += w.scaled[i];
  }
  return w;
}

// Write one query's factors, or the query itself, and say which arithmetic is right for it.
Kind prepare_query(const Keys& g, int64_t b, bool many, const float* query, float* out) {
  const float *shift = g.shift + b * g.padded, *limit = g.limit + b * g.padded;
  V farthest = {}, poison = {};
  for (int64_t c = 0; c < g.d; c += L) {
    V x = load_part(query + c, g.d - c);
    V far = abs_of(x + load(shift + c));
    farthest = pick(far > farthest, far, farthest);
    poison += x * 0.0f;
  }
  Kind kind = DIRECT;
  if (!poisoned(poison) && g.kinds[b] == FACTORED) {
    if (largest_of(farthest) + g.reach[b] < NARROW)
      kind = SMALL;
    else if (many)
      kind = FACTORED;
  }
  const int64_t* every = nullptr;
  fill(kind, query, every, 1, g.d, 0, g.padded, 1, shift, limit, {}, out, {g.padded, W});
  return kind;
}

// Where an example's keys lie for one kind of arithmetic.
struct Rows {
  const float* first;
  const int32_t* rows;  // or null: one after the other
  int64_t stride, n, d;

  const float* row(int64_t k) const { return first + (rows ? rows[k] : k) * stride; }
  INLINE V vector(const float* p, int64_t c) const {
    // Prepared rows are padded, a user's keys are not.
    return rows ? (c < d ? load_part(p + c, d - c) : V{}) : load(p + c);
  }
};

Rows rows_of(const Keys& g, int64_t b, Kind kind) {
  const int64_t at = b * g.T_enc;
  if (kind == FACTORED) return {g.factor + at * g.padded, nullptr, g.padded, g.counts[b], g.d};
  return {g.key + at * g.d, g.rows + at, g.d, g.counts[b], g.d};
}

template <Kind kind, int N>
INLINE void step_tile(const Rows& keys, const StepWeights& w, const float* e, int64_t k,
                      float* scores) {
  const float* f[N];
#pragma GCC unroll 4
  for (int i = 0; i < N; i++) f[i] = keys.row(k + i);
  V total[N] = {};
  const V one = all(SCALE);
  for (int64_t c = 0; c < keys.d; c += W) {
    const V x = load((kind == FACTORED ? w.scaled : w.plain) + c);
    const V y = load((kind == FACTORED ? w.scaled : w.plain) + c + L);
    const V e1 = load(e + c), e2 = load(e + c + L);
#pragma GCC unroll 4
    for (int i = 0; i < N; i++) {
      const V f1 = keys.vector(f[i], c), f2 = keys.vector(f[i], c + L);
      if (kind == FACTORED) {
        V a = e1 * f1 + one, b = e2 * f2 + one;
        total[i] += quotient(x * b + y * a, a * b);
      } else {
        total[i] += x * tangent_of<kind>(e1 + f1) + y * tangent_of<kind>(e2 + f2);
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < N; i++) {
    float found = sum_of(total[i]);
    if (kind == FACTORED) found = (float)(w.unit * (w.sum - 2.0 * SCALE * found));
    scores[k + i] = found;
  }
}

template <Kind kind>
void step_scores(const Rows& keys, const StepWeights& w, const float* e, float* scores) {
  constexpr int N = kind == FACTORED ? 4 : 1;
  int64_t k = 0;
  for (; k + N <= keys.n; k += N) step_tile<kind, N>(keys, w, e, k, scores);
  for (; k < keys.n; k++) step_tile<kind, 1>(keys, w, e, k, scores);
}

// Add N weighted rows to out. Rows are read from end to end, which is how memory is fastest: what
// a step costs is mostly the reading of keys and values.
template <int N>
INLINE void add_rows(const float* value, const int32_t* rows, const float* weights, int64_t d_v,
                     float* out) {
  const float* from[N];
  V weight[N];
#pragma GCC unroll 4
  for (int i = 0; i < N; i++) from[i] = value + rows[i] * d_v, weight[i] = all(weights[i]);
  int64_t c = 0;
  for (; c + L <= d_v; c += L) {
    V total = load(out + c);
#pragma GCC unroll 4
    for (int i = 0; i < N; i++) total += weight[i] * load(from[i] + c);
    store(out + c, total);
  }
  for (; c < d_v; c++)
    for (int i = 0; i < N; i++) out[c] += weights[i] * from[i][c];
}

void average(const float* value, const int32_t* rows, int64_t n, int64_t d_v,
             const float* weights, float* out) {
  clear(out, d_v);
  int64_t k = 0;
  for (; k + 4 <= n; k += 4) add_rows<4>(value, rows + k, weights + k, d_v, out);
  for (; k < n; k++) add_rows<1>(value, rows + k, weights + k, d_v, out);
}

INLINE float dot(const float* x, const float* y, int64_t n) {
  V total = {}, more = {};
  int64_t i = 0;
  for (; i + W <= n; i += W) {
    total += load(x + i) * load(y + i);
    more += load(x + i + L) * load(y + i + L);
  }
  for (; i < n; i += L) total += load_part(x + i, n - i) * load_part(y + i, n - i);
  return sum_of(total + more);
}

// factors (batch, padded) and kinds (batch) are what step_backward() reads; the first may be
// null. So may scores (batch, T_enc), which are 0 for keys that are not permitted.
int step_forward(const Step* step, const float* query, int64_t query_stride, float* factors,
                 uint8_t* kinds, float* scores, float* weights, float* context, int threads) {
  const Keys& g = *step->keys;
  Arena shared(sizeof(float) * 2 * g.padded);
  if (!shared) return 1;
  const StepWeights w = weigh_step(*step, shared);
  return in_parts(g.batch, threads, [&](int64_t from, int64_t to) {
    Arena memory(sizeof(float) * (g.padded + g.T_enc + L));
    if (!memory) return false;
    float *own = memory.take<float>(g.padded), *row = memory.take<float>(g.T_enc + L);
    for (int64_t b = from; b < to; b++) {
      float* e = factors ? factors + b * g.padded : own;
      const Kind kind = prepare_query(g, b, w.many, query + b * query_stride, e);
      if (kinds) kinds[b] = kind;
      const Rows keys = rows_of(g, b, kind);
      const int32_t* which = g.rows + b * g.T_enc;
      if (kind == FACTORED) step_scores<FACTORED>(keys, w, e, row);
      if (kind == SMALL) step_scores<SMALL>(keys, w, e, row);
      if (kind == DIRECT) step_scores<DIRECT>(keys, w, e, row);
      if (scores) {
        clear(scores + b * g.T_enc, g.T_enc);
        for (int64_t k = 0; k < keys.n; k++) scores[b * g.T_enc + which[k]] = row[k];
      }
      softmax(row, keys.n);
      average(step->value + b * g.T_enc * step->d_v, which, keys.n, step->d_v, row,
              context + b * step->d_v);
      float* out = weights + b * g.T_enc;
      if (keys.n < g.T_enc) clear(out, g.T_enc);
      for (int64_t k = 0; k < keys.n; k++) out[which[k]] = row[k];
    }
    return true;
  }) ? 0 : 1;
}

// Sum d_scores (1 - h^2) over keys for N pairs of vectors of features, times v. A softmax makes
// the sum of d_scores 0: where h is small, what is left is -d_scores h^2, which does not cancel.
template <Kind kind, int N>
INLINE void query_columns(const Rows& keys, const StepWeights& w, const float* e,
                          const float* d_scores, int64_t c, float* out) {
  V e1[N], e2[N], by[N] = {}, by2[N] = {};
  const V one = all(SCALE);
#pragma GCC unroll 2
  for (int i = 0; i < N; i++) e1[i] = load(e + c + i * W), e2[i] = load(e + c + i * W + L);
  for (int64_t k = 0; k < keys.n; k++) {
    const float* f = keys.row(k);
    const V s = all(d_scores[k]);
#pragma GCC unroll 2
    for (int i = 0; i < N; i++) {
      const V f1 = keys.vector(f, c + i * W), f2 = keys.vector(f, c + i * W + L);
      if (kind == FACTORED) {
        V a = e1[i] * f1 + one, b = e2[i] * f2 + one;
        V inverse = quotient(one, a * b);
        V r = inverse * b, r2 = inverse * a, m = s * r, m2 = s * r2;
        by[i] += m - m * r;  // a quarter of what is sought
        by2[i] += m2 - m2 * r2;
      } else {
        V h = tangent_of<kind>(e1[i] + f1), h2 = tangent_of<kind>(e2[i] + f2);
        const V none = kind == SMALL ? V{} : s;
        by[i] += none - s * h * h;
        by2[i] += none - s * h2 * h2;
      }
    }
  }
  const float turn = kind == FACTORED ? 4.0f : 1.0f;
#pragma GCC unroll 2
  for (int i = 0; i < N; i++) {
    const int64_t at = c + i * W;
    store_part(out + at, by[i] * load(w.plain + at) * turn, keys.d - at);
    if (keys.d > at + L)
      store_part(out + at + L, by2[i] * load(w.plain + at + L) * turn, keys.d - at - L);
  }
}

template <Kind kind>
void query_gradient(const Rows& keys, const StepWeights& w, const float* e,
                    const float* d_scores, float* out) {
  constexpr int N = kind == FACTORED ? 2 : 1;
  int64_t c = 0;
  for (; c + N * W <= keys.d; c += N * W)
    query_columns<kind, N>(keys, w, e, d_scores, c, out);
  for (; c < keys.d; c += W) query_columns<kind, 1>(keys, w, e, d_scores, c, out);
}

// d_weights (batch rows, some stride apart) may be null; d_scores (batch, T_enc) and d_query are
// written. factors and kinds are step_forward()'s.
int step_backward(const Step* step, const float* factors, const uint8_t* kinds,
                  const float* weights, const float* d_context, const float* d_weights,
                  int64_t d_weights_stride, float* d_scores, float* d_query,
                  int64_t d_query_stride, int threads) {
  const Keys& g = *step->keys;
  const int64_t d_v = step->d_v;
  Arena shared(sizeof(float) * 2 * g.padded);
  if (!shared) return 1;
  const StepWeights w = weigh_step(*step, shared);
  return in_parts(g.batch, threads, [&](int64_t from, int64_t to) {
    Arena memory(sizeof(float) * g.T_enc);
    if (!memory) return false;
    float* row = memory.take<float>(g.T_enc);
    for (int64_t b = from; b < to; b++) {
      const int64_t at = b * g.T_enc;
      const Kind kind = (Kind)kinds[b];
      const Rows keys = rows_of(g, b, kind);
      const int32_t* which = g.rows + at;
      double total = 0;
      for (int64_t k = 0; k < keys.n; k++) {
        row[k] = dot(d_context + b * d_v, step->value + (at + which[k]) * d_v, d_v);
        if (d_weights) row[k] += d_weights[b * d_weights_stride + which[k]];
        total += (double)weights[at + which[k]] * row[k];
      }
      if (keys.n < g.T_enc) clear(d_scores + at, g.T_enc);
      for (int64_t k = 0; k < keys.n; k++) {
        row[k] = weights[at + which[k]] * (row[k] - (float)total);
        d_scores[at + which[k]] = row[k];
      }
      const float* e = factors + b * g.padded;
      float* out = d_query + b * d_query_stride;
      if (kind == FACTORED) query_gradient<FACTORED>(keys, w, e, row, out);
      if (kind == SMALL) query_gradient<SMALL>(keys, w, e, row, out);
      if (kind == DIRECT) query_gradient<DIRECT>(keys, w, e, row, out);
    }
    return true;
  }) ? 0 : 1;
}

}  // namespace
