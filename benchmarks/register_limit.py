"""How fast the factored loops could be here if no number ever had to be loaded.

C++ loops with the arithmetic of the native kernel's inner loops, on values that stay in
registers: scores, four features a division, and their gradients, two features a division. They
are compiled for this machine when they are called; without a C++ compiler there are no such
figures.
"""

import ctypes
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

__all__ = ["register_limit"]

_SOURCE = r"""
#if defined(__AVX512F__)
#include <immintrin.h>
#define L 16
#elif defined(__AVX__)
#define L 8
#else
#define L 4
#endif
typedef float V __attribute__((vector_size(4 * L)));
#define N 6  // sums of scores that do not wait for one another
#define M 4  // the same of gradients, of which fewer fit

extern "C" int lanes() { return L; }
extern "C" int approximates() {
#if defined(__AVX512F__)
  return 1;
#else
  return 0;
#endif
}

template <bool approximate> static V inverse_of(V x) {
#if defined(__AVX512F__)
  if (approximate) {
    V r = (V)_mm512_rcp14_ps((__m512)x);
    return r + r * (1.0f - x * r);
  }
#endif
  return 1.0f / x;
}

template <bool approximate> static V quotient_of(V x, V y) {
  return approximate ? x * inverse_of<approximate>(y) : x / y;
}

template <bool approximate> static float scores(long times) {
  V e[N], e2[N], total[N] = {};
  V f = {}, f2 = {}, lead = {}, lead2 = {}, y = {}, y2 = {}, one = {};
  f += 1.5f, f2 += 0.7f, lead += 0.3f, lead2 += 0.4f, y += 0.6f, y2 += 0.5f, one += 0x1p-31f;
  asm volatile("" : "+x"(lead), "+x"(lead2), "+x"(y), "+x"(y2), "+x"(f), "+x"(f2));
  for (int j = 0; j < N; j++) e[j] = f + (float)j, e2[j] = f2 + (float)j;
  for (long i = 0; i < times; i++)
#pragma GCC unroll 6
    for (int j = 0; j < N; j++) {
      asm volatile("" : "+x"(e[j]), "+x"(e2[j]));  // these may have changed
      V a = e[j] * f + lead, b = e2[j] * f2 + one, a2 = e[j] * f2 + lead2, b2 = e2[j] * f + one;
      V below = a * b, above = y * a + b, below2 = a2 * b2, above2 = y2 * a2 + b2;
      total[j] +=
          quotient_of<approximate>(above * below2 + above2 * below, below * below2);
    }
  float found = 0;
  for (int j = 0; j < N; j++) found += total[j][0];
  return found;
}

// Half as many features as in scores().
template <bool approximate> static float gradients(long times) {
  V e[M], e2[M], by[M] = {}, by2[M] = {}, f = {}, f2 = {}, s = {}, one = {}, two = {};
  V by_k = {}, by_k2 = {}, by_v = {}, by_v2 = {};
  f += 1.5f, f2 += 0.7f, s += 0.3f, one += 0x1p-62f, two += 0x1p-61f;
  asm volatile("" : "+x"(f), "+x"(f2), "+x"(s), "+x"(two));
  for (int j = 0; j < M; j++) e[j] = f + (float)j, e2[j] = f2 + (float)j;
  for (long i = 0; i < times; i++)
#pragma GCC unroll 4
    for (int j = 0; j < M; j++) {
      asm volatile("" : "+x"(e[j]), "+x"(e2[j]));
      V a = e[j] * f + one, b = e2[j] * f2 + one, below = a * b;
      V r = inverse_of<approximate>(below) * two;
      V h = r * b - 1.0f, h2 = r * a - 1.0f, sh = s * h, sh2 = s * h2;
      V slope = s - sh * h, slope2 = s - sh2 * h2;
      by[j] += slope, by2[j] += slope2, by_k += slope, by_k2 += slope2;
      by_v += sh, by_v2 += sh2;
    }
  float found = by_k[0] + by_k2[0] + by_v[0] + by_v2[0];
  for (int j = 0; j < M; j++) found += by[j][0] + by2[j][0];
  return found;
}

extern "C" float scores_divided(long times) { return scores<false>(times); }
extern "C" float scores_approximated(long times) { return scores<true>(times); }
extern "C" float gradients_divided(long times) { return gradients<false>(times); }
extern "C" float gradients_approximated(long times) { return gradients<true>(times); }
"""
_SUMS = {"scores": 6 * 4, "gradients": 4 * 2}  # features at once
_TIMES = 500_000


def register_limit() -> dict[str, float] | str:
    """Return billions of pairs x features a second for each loop, or why there are none.

    Returns
    -------
    limits : dict or str
        For ``scores`` and ``gradients`` the faster of a division and, where the processor has
        one, a refined approximate reciprocal; ``scores, dividing`` and ``gradients, dividing``
        always divide.
    """
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        return "no C++ compiler was found"
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "limit.cpp"), Path(folder, "limit.so")
        source.write_text(_SOURCE, encoding="utf-8")
        command = [compiler, "-O3", "-march=native", "-ffp-contract=fast", "-shared", "-fPIC"]
        made = subprocess.run(
            [*command, source, "-o", library], capture_output=True, text=True, check=False
        )
        if made.returncode:
            return f"the compiler failed: {made.stderr.strip().splitlines()[0]}"
        loaded = ctypes.CDLL(str(library))
        found: dict[str, float] = {}
        for name, features in _SUMS.items():
            work = features * loaded.lanes()
            divided = _rate(getattr(loaded, f"{name}_divided"), work)
            found[name] = found[f"{name}, dividing"] = divided
            if loaded.approximates():
                found[name] = max(divided, _rate(getattr(loaded, f"{name}_approximated"), work))
        return found


def _rate(loop: Any, work: int) -> float:
    loop.restype, loop.argtypes = ctypes.c_float, [ctypes.c_long]
    loop(_TIMES // 10)
    spent = []
    for _ in range(5):
        began = time.process_time()
        loop(_TIMES)
        spent.append(time.process_time() - began)
    return work * _TIMES / min(spent) / 1e9


if __name__ == "__main__":
    print(register_limit())
