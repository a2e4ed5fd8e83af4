// Attention on plain arrays. Every function here is the Python reference's of the same name
// (regard.attention.reference), and is tested against it.

const inner = (a, b) => a.reduce((sum, x, at) => sum + x * b[at], 0);
const apply = (matrix, vector) => matrix.map((row) => inner(row, vector));
const turned = (rows) => rows[0].map((_, at) => rows.map((row) => row[at]));

// Scores: (T_dec, d_s) and (T_enc, d_h) to (T_dec, T_enc).

export function additive(query, key, { W_a, U_a, v_a }) {
  const offers = key.map((h) => apply(U_a, h));
  return query.map((s) => {
    const asked = apply(W_a, s);
    return offers.map((offer) => inner(v_a, offer.map((k, at) => Math.tanh(asked[at] + k))));
  });
}

export function dot(query, key) {
  return query.map((s) => key.map((h) => inner(s, h)));
}

export function general(query, key, { W }) {
  return query.map((s) => key.map((h) => inner(s, apply(W, h))));
}

export function scaledDot(query, key) {
  return query.map((s) => key.map((h) => inner(s, h) / Math.sqrt(s.length)));
}

// Masks: (T_dec, T_enc), true = may attend.

const grid = (rows, columns, of) =>
  Array.from({ length: rows }, (_, t) => Array.from({ length: columns }, (_, i) => of(t, i)));

export const fromLengths = (length, rows, columns) => grid(rows, columns, (t, i) => i < length);
export const causal = (rows, columns) => grid(rows, columns, (t, i) => i <= t);
export const band = (rows, columns, left, right) =>
  grid(rows, columns, (t, i) => t - left <= i && i <= t + right);

// Weights, context, heads.

/** exp(e_i) / sum_j exp(e_j) over the keys that may be attended, 0 elsewhere; of none, zeros. */
export function softmax(scores, mask = scores.map(() => true)) {
  const peak = Math.max(...scores.filter((_, at) => mask[at]));
  const raised = scores.map((e, at) => (mask[at] ? Math.exp(e - peak) : 0));
  const total = raised.reduce((sum, x) => sum + x, 0);
  return total === 0 ? raised : raised.map((x) => x / total);
}

export function attend(query, key, value, score, mask = null) {
  const weights = score(query, key).map((row, t) => softmax(row, mask?.[t]));
  const columns = turned(value);
  return { weights, context: weights.map((row) => apply(columns, row)) };
}

/** Self-attention of every slice of the features by scaled dot products, contexts joined. */
export function multiHead(states, heads) {
  const size = states[0].length / heads;
  const each = Array.from({ length: heads }, (_, head) => {
    const part = states.map((row) => row.slice(head * size, (head + 1) * size));
    return attend(part, part, part, scaledDot);
  });
  return {
    weights: each.map((one) => one.weights),
    context: states.map((_, t) => each.flatMap((one) => one.context[t])),
  };
}

// What is said of weights.

/** Entropy in nats. */
export function entropy(weights) {
  return weights.reduce((sum, a) => sum - (a > 0 ? a * Math.log(a) : 0), 0);
}

/** Jensen-Shannon divergence in nats, from 0 to ln 2. */
export function divergence(one, other) {
  const middle = one.map((a, at) => (a + other[at]) / 2);
  return Math.max(0, entropy(middle) - (entropy(one) + entropy(other)) / 2);
}

export const sigmoid = (x) => 1 / (1 + Math.exp(-x));
/** What a read-out of one number answers: sigma(sum_i a_i s_i + b). */
export const answer = (weights, offers, bias) => sigmoid(inner(weights, offers) + bias);

/**
 * The weights of largest divergence from `weights` whose answer stays within `least` of theirs.
 *
 * Divergence is convex and the weights that are allowed form a polytope, so that the largest is at
 * a corner; at a corner two tokens at most have weight.
 */
export function farthest(weights, offers, bias, least) {
  const told = answer(weights, offers, bias);
  const logit = (p) => Math.log(p / (1 - p)) - bias;
  const low = told - least <= 0 ? -Infinity : logit(told - least);
  const high = told + least >= 1 ? Infinity : logit(told + least);
  let best = weights;
  let most = 0;
  const consider = (found) => {
    const far = divergence(weights, found);
    if (far > most) [best, most] = [found, far];
  };
  const only = (pairs) => {
    const made = weights.map(() => 0);
    for (const [at, share] of pairs) made[at] = share;
    return made;
  };
  offers.forEach((one, i) => {
    if (one >= low && one <= high) consider(only([[i, 1]]));
    offers.slice(0, i).forEach((other, j) => {
      for (const edge of [low, high]) {
        const share = (edge - other) / (one - other);
        if (share > 0 && share < 1) consider(only([[i, share], [j, 1 - share]]));
      }
    });
  });
  return best;
}
