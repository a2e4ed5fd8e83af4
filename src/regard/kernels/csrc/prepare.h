// What is done to queries, keys and weights before the loop over pairs.
//
// With r = 1 / (1 + e^{2q} e^{2k}), tanh(q + k) = 1 - 2 r. So the loop over pairs needs no
// exponential, and features share a division: x/a + y/b = (x b + y a) / (a b), and two such sums
// can be added in the same way. What keeps this right:
//
// 1. Each feature is shifted to the middle of the narrower of its two sides, so that opposite
//    offsets of queries and keys cancel before any exponential. The shift's rounding error is
//    carried into the exponential.
// 2. The wider side is clamped where the tangent is saturated for every partner.
// 3. Terms are scaled by 2^-62 where two share a division, so that their product uses the whole
//    range of exponents, and by 2^-31 where four do.
// 4. Examples that are too wide even for two, or that hold a NaN or an infinity, take a tangent
//    for each pair; so do examples whose sums are all near zero, where 1 - 2 r would cancel. The
//    choice is made example by example: no result depends on others in the batch.
//
// One feature's tangent is within 3e-7 of the exact one, and many average. Where v leaves few
// that matter, the tangents are computed one by one as well; they are within 2e-7.

#pragma once

#include <stdlib.h>

#include "vectors.h"

namespace {

constexpr float SCALE = 0x1p-62f;
constexpr int HALF_SCALE = -31;     // its exponent on each of the two factors
constexpr float QUARTER_SCALE = 0x1p-31f;
constexpr int QUARTER_OF_QUERY = -15, QUARTER_OF_KEY = -16;
constexpr float SATURATED = 12.0f;  // 1 - tanh(12) = 8e-11
constexpr float WIDEST = 15.5f;     // 2^-62 e^{2 (2 * 15.5 + 12)}, squared, is below 2^127
constexpr float NARROW = 0.5f;      // where tangent_near() is right
constexpr double FEW = 32;          // features whose rounding errors would not average out
constexpr int LEAST = 40;           // weights below 2^-40 of the largest do not count
constexpr float IDLE = 0x1p-12f;    // what weighs a feature that only fills a vector; see weigh()

// Two features share a division in FACTORED, four in QUADS.
enum Kind : uint8_t { FACTORED, SMALL, DIRECT, QUADS };

template <Kind kind>
INLINE V tangent_of(V x) {
  return kind == SMALL ? tangent_near(x) : tangent(x);
}

// One problem, its batch axes flattened to one.
struct Problem {
  const float *query, *key, *v;
  const uint8_t* key_mask;  // (batch, T_enc), 0 = the key is never read; or null
  int64_t batch, T_dec, T_enc, d, padded;
};

struct Weights {
  float *inverse, *other, *swap;  // padded; for pairs of features, see weigh()
  float *two, *four;              // the same of the scaled 1, in FACTORED and in QUADS
  float* plain;                   // padded with zeros
  float start[L];                 // what sums of v r begin with: half of -v, lane by lane
  double unit, sum;               // a power of two, and the weights by it that start leaves out
  float twos, fours;              // how far apart q and k may lie for FACTORED and QUADS
  bool many;                      // whether enough features weigh for guard 4
};

// A power of two next to the largest weight.
double unit_of(const float* v, int64_t d) {
  float largest = 0;
  for (int64_t i = 0; i < d; i++)
    if (fabsf(v[i]) > largest) largest = fabsf(v[i]);
  int exponent = 0;
  if (isfinite(largest) && largest > 0) (void)frexpf(largest, &exponent);
  return ldexp(1.0, exponent);
}

// Whether v weighs enough features for guard 4; false for a NaN or an infinity too.
bool averages(const float* v, int64_t d) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < d; i++) {
    const double x = fabs((double)v[i]);
    sum += x;
    squares += x * x;
  }
  return sum * sum >= FEW * squares && isfinite(sum);
}

// Of each pair of features the one with the larger weight leads. Its queries' factors and its
// share of the 1 are divided by that weight: with A = a / x, x/a + y/b = (b + y A) / (A b) needs
// one product less. v is scaled to a largest value near 1. What A may be limits how far apart
// queries and keys may lie: log2 of a product of terms is at most 126. Sums begin with -v / 2, so
// that they and their rounding errors are as small as the scores.
void weigh(const Problem& g, Weights& w) {
  w.unit = unit_of(g.v, g.d);
  w.many = averages(g.v, g.d);
  w.sum = 0;
  clear(w.plain, g.padded);
  for (int64_t i = 0; i < g.d; i++) w.plain[i] = g.v[i];
  if (!w.many) return;
  double least = 1, lanes[L] = {};
  for (int64_t i = 0; i < g.padded; i += W)
    for (int64_t j = i; j < i + L; j++) {
      const float x = (float)(w.plain[j] / w.unit), y = (float)(w.plain[j + L] / w.unit);
      const bool swap = fabsf(y) > fabsf(x);
      float lead = swap ? y : x;
      // tanh(0) is what a feature that is not there counts, so that its weight may be anything.
      if (j >= g.d) lead = IDLE;
      if (fabsf(lead) < ldexpf(1, -LEAST)) lead = copysignf(ldexpf(1, -LEAST), lead);
      w.swap[j] = swap ? 1.0f : 0.0f;
      w.inverse[j] = 1 / lead;
      w.two[j] = w.inverse[j] * SCALE;
      w.four[j] = w.inverse[j] * QUARTER_SCALE;
      w.other[j] = swap ? x : y;
      // The weight that is really used, which is not quite the given one.
      const double used = 1 / (double)w.inverse[j];
      lanes[j - i] += used + w.other[j];
      if (fabs(used) < least) least = fabs(used);
    }
  for (int j = 0; j < L; j++) {
    w.start[j] = (float)(-0.5 * lanes[j]);
    w.sum += lanes[j] + 2.0 * w.start[j];
  }
  const double bits = -log2(least), step = 2 / 0.6931471805599453;
  w.twos = (float)((2 * 62 + 126 - bits) / (2 * step));
  w.fours = (float)((4 * 31 + 126 - 2 * bits) / (4 * step));
}

// Write which of an example's keys may be attended; return how many.
template <typename Row>
int64_t permitted(const uint8_t* key_mask, int64_t T_enc, Row* rows) {
  int64_t n = 0;
  for (int64_t i = 0; i < T_enc; i++)
    if (!key_mask || key_mask[i]) rows[n++] = (Row)i;
  return n;
}

struct Range {
  V low, high, poison;
};

// Of N vectors of features, of which `part` exist. Row by row, as they lie in memory.
template <int N, typename Row>
INLINE void ranges_of(const float* p, const Row* rows, int64_t n, int64_t d, int64_t part,
                      Range* found) {
  for (int64_t i = 0; i < n; i++) {
    const float* row = p + (rows ? rows[i] : i) * d;
#pragma GCC unroll 4
    for (int j = 0; j < N; j++) {
      const V x = N == 1 ? load_part(row, part) : load(row + j * L);
      // NaN for ever after a NaN or an infinity.
      found[j].poison = i ? found[j].poison + x * 0.0f : x * 0.0f;
      found[j].low = i ? at_most(found[j].low, x) : x;
      found[j].high = i ? larger(found[j].high, x) : x;
    }
  }
}

INLINE bool poisoned(V x) {
  float part[L];
  store(part, x);
  bool found = false;
  for (int i = 0; i < L; i++) found |= part[i] != 0;  // true for NaN
  return found;
}

// Where an example's queries and keys lie.
struct Extent {
  bool finite;
  float widest;  // half of the range of the narrower side
  float reach;   // the largest abs(q + k), at most
  float span;    // the same, clamped
};

// The largest of its vectors.
struct Most {
  V widest, reach, span, poison;
};

// Fill shift and limit for N vectors of features from c on.
template <int N>
INLINE void survey_columns(const Problem& g, int64_t b, const int64_t* rows, int64_t n,
                           int64_t c, float* shift, float* limit, Most& most) {
  const int64_t* every = nullptr;
  Range queries[N], keys[N];
  ranges_of<N>(g.query + b * g.T_dec * g.d + c, every, g.T_dec, g.d, g.d - c, queries);
  ranges_of<N>(g.key + b * g.T_enc * g.d + c, rows, n, g.d, g.d - c, keys);
  for (int j = 0; j < N; j++) {
    const Range q = queries[j], k = keys[j];
    V q_half = 0.5f * q.high - 0.5f * q.low, k_half = 0.5f * k.high - 0.5f * k.low;
    I keys_are_narrower = k_half <= q_half;
    V half = pick(keys_are_narrower, k_half, q_half);
    V middle = pick(keys_are_narrower, 0.5f * k.high + 0.5f * k.low,
                    -(0.5f * q.high + 0.5f * q.low));
    V farthest = half + SATURATED;
    store(shift + c + j * L, middle);
    store(limit + c + j * L, farthest);
    V far_q = larger(abs_of(q.low + middle), abs_of(q.high + middle));
    V far_k = larger(abs_of(k.low - middle), abs_of(k.high - middle));
    most.widest = larger(half, most.widest);
    most.reach = larger(far_q + far_k, most.reach);
    most.span = larger(at_most(far_q, farthest) + at_most(far_k, farthest), most.span);
    most.poison += q.poison + k.poison;
  }
}

// Fill shift and limit (guards 1 and 2).
Extent survey(const Problem& g, int64_t b, const int64_t* rows, int64_t n, float* shift,
              float* limit) {
  Most most = {};
  int64_t c = 0;
  for (; c + 4 * L <= g.d; c += 4 * L)
    survey_columns<4>(g, b, rows, n, c, shift, limit, most);
  for (; c < g.d; c += L) survey_columns<1>(g, b, rows, n, c, shift, limit, most);
  for (; c < g.padded; c += L) {
    store(shift + c, V{});
    store(limit + c, all(SATURATED));
  }
  return {!poisoned(most.poison), largest_of(most.widest), largest_of(most.reach),
          largest_of(most.span)};
}

// Which arithmetic is right for an example's scores.
Kind kind_of_scores(const Extent& x, const Weights& w) {
  if (!x.finite) return DIRECT;
  if (x.reach < NARROW) return SMALL;
  if (!w.many) return DIRECT;
  if (x.span <= w.fours) return QUADS;
  return x.widest <= WIDEST && x.span <= w.twos ? FACTORED : DIRECT;
}

// The same for its gradients.
Kind kind_of_gradients(const Extent& x, bool many) {
  if (!x.finite) return DIRECT;
  if (x.reach < NARROW) return SMALL;
  return x.widest <= WIDEST && many ? FACTORED : DIRECT;
}

template <int exponent>
INLINE V factor(V x, V shift, V limit) {
  V sum = x + shift, back = sum - x;
  V lost = (x - (sum - back)) + (shift - back);
  V y = at_least(at_most(sum, limit), -limit);
  return exponential(2.0f * y, 2.0f * lost, exponent);
}

// How rows become factors: where `swap` says so the two features of a pair change places, and
// then they are multiplied by `inverse`. Both may be null.
struct Turn {
  const float *swap, *inverse;
};

// Where prepared rows go: the next row's first W features, and a row's next W features.
struct Layout {
  int64_t row, vectors;
};

// Write features [from, to) of the given rows as factors times 2^exponent.
template <int exponent, typename Row>
void fill_factors(const float* source, const Row* rows, int64_t n, int64_t d, int64_t from,
                  int64_t to, float sign, const float* shift, const float* limit, Turn turn,
                  float* out, Layout layout) {
  for (int64_t i = 0; i < n; i++) {
    const float* row = source + (rows ? rows[i] : i) * d;
    float* p = out + i * layout.row;
    for (int64_t c = from; c < to; c += W, p += layout.vectors) {
      V x = d > c ? load_part(row + c, d - c) : V{};
      V y = d > c + L ? load_part(row + c + L, d - c - L) : V{};
      x = factor<exponent>(x, sign * load(shift + c), load(limit + c));
      y = factor<exponent>(y, sign * load(shift + c + L), load(limit + c + L));
      if (turn.swap) {
        I other = load(turn.swap + c) > 0.5f;
        V first = pick(other, y, x);
        y = pick(other, x, y);
        x = first;
      }
      if (turn.inverse) x *= load(turn.inverse + c);
      store(p, x);
      store(p + L, y);
    }
  }
}

// The same for every kind of arithmetic; all but those with factors take rows as they are.
template <typename Row>
void fill(Kind kind, const float* source, const Row* rows, int64_t n, int64_t d, int64_t from,
          int64_t to, float sign, const float* shift, const float* limit, Turn turn, float* out,
          Layout layout) {
  if (kind == FACTORED)
    return fill_factors<HALF_SCALE>(source, rows, n, d, from, to, sign, shift, limit, turn, out,
                                    layout);
  if (kind == QUADS && sign > 0)
    return fill_factors<QUARTER_OF_QUERY>(source, rows, n, d, from, to, sign, shift, limit,
                                          turn, out, layout);
  if (kind == QUADS)
    return fill_factors<QUARTER_OF_KEY>(source, rows, n, d, from, to, sign, shift, limit, turn,
                                        out, layout);
  for (int64_t i = 0; i < n; i++) {
    const float* row = source + (rows ? rows[i] : i) * d;
    float* p = out + i * layout.row;
    for (int64_t c = from; c < to; c += W, p += layout.vectors) {
      store(p, d > c ? load_part(row + c, d - c) : V{});
      store(p + L, d > c + L ? load_part(row + c + L, d - c - L) : V{});
    }
  }
}

}  // namespace
