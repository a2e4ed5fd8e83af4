// What is done to queries, keys and weights before the loop over pairs.
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

#pragma once

#include <stdlib.h>

#include "vectors.h"

namespace {

constexpr float SCALE = 0x1p-62f;
constexpr int HALF_SCALE = -31;     // its exponent on each of the two factors
constexpr float SATURATED = 12.0f;  // 1 - tanh(12) = 8e-11
constexpr float WIDEST = 15.5f;     // 2^-62 e^{2 (2 * 15.5 + 12)}, squared, is below 2^127
constexpr float NARROW = 0.5f;      // where tangent_near() is right
constexpr double FEW = 32;          // features whose rounding errors would not average out

enum Kind : uint8_t { FACTORED, SMALL, DIRECT };

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
  float *lead, *ratio, *swap;  // padded; for pairs of a batch of queries, see weigh()
  float* plain;                // padded with zeros
  double unit, sum;            // a power of two, and the sum of v / unit
  bool many;                   // whether enough features weigh for guard 4
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

// Of each pair of features the one with the larger weight leads: x/a + y/b with abs(x) >= abs(y)
// is x (b + (y/x) a) / (a b), where nothing overflows. v is scaled to a largest value near 1.
void weigh(const Problem& g, Weights& w) {
  w.unit = unit_of(g.v, g.d);
  w.many = averages(g.v, g.d);
  w.sum = 0;
  clear(w.plain, g.padded);
  for (int64_t i = 0; i < g.d; i++) w.plain[i] = g.v[i];
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

template <typename Row>
INLINE Range range_of(const float* p, const Row* rows, int64_t n, int64_t d, int64_t part) {
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

INLINE bool poisoned(V x) {
  float part[L];
  store(part, x);
  bool found = false;
  for (int i = 0; i < L; i++) found |= part[i] != 0;  // true for NaN
  return found;
}

// Fill shift and limit (guards 1 and 2) and say which arithmetic is right for this example.
Kind survey(const Problem& g, const Weights& w, int64_t b, const int64_t* rows, int64_t n,
            float* shift, float* limit) {
  V widest = {}, reach = {}, poison = {};
  for (int64_t c = 0; c < g.d; c += L) {
    const int64_t part = g.d - c;
    const int64_t* every = nullptr;
    Range q = range_of(g.query + b * g.T_dec * g.d + c, every, g.T_dec, g.d, part);
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
  if (poisoned(poison)) return DIRECT;
  if (largest_of(reach) < NARROW) return SMALL;
  return largest_of(widest) <= WIDEST && w.many ? FACTORED : DIRECT;
}

INLINE V factor(V x, V shift, V limit) {
  V sum = x + shift, back = sum - x;
  V lost = (x - (sum - back)) + (shift - back);
  V y = at_least(at_most(sum, limit), -limit);
  return exponential(2.0f * y, 2.0f * lost, HALF_SCALE);
}

// Write features [from, to) of the given rows, W apart: factors for FACTORED, else as they are.
// Where `swap` says so the two features of a pair change places.
template <typename Row>
void fill(Kind kind, const float* source, const Row* rows, int64_t n, int64_t d, int64_t from,
          int64_t to, float sign, const float* shift, const float* limit, const float* swap,
          float* out, int64_t stride) {
  for (int64_t i = 0; i < n; i++, out += stride) {
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

}  // namespace
