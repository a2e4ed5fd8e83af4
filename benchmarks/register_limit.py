"""How fast the factored loop could be here if no number ever had to be loaded.

A C++ loop with the arithmetic of the native kernel's inner loop, two features a division, on
values that stay in registers. It is compiled for this machine when it is called; without a C++
compiler there is no such figure.
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
#define N 6  // sums that do not wait for one another

extern "C" int lanes() { return L; }
extern "C" int approximates() {
#if defined(__AVX512F__)
  return 1;
#else
  return 0;
#endif
}

template <bool approximate> static float loop(long times) {
  V e[N], e2[N], f = {}, f2 = {}, x = {}, y = {}, one = {}, total[N] = {};
  f += 1.5f, f2 += 0.7f, x += 0.3f, y += 0.6f, one += 0x1p-62f;
  for (int j = 0; j < N; j++) e[j] = f + (float)j, e2[j] = f2 + (float)j;
  for (long i = 0; i < times; i++)
#pragma GCC unroll 6
    for (int j = 0; j < N; j++) {
      asm volatile("" : "+x"(e[j]), "+x"(e2[j]));  // these may have changed
      V a = e[j] * f + one, b = e2[j] * f2 + one, top = y * a + b, below = a * b;
#if defined(__AVX512F__)
      if (approximate) {
        V r = (V)_mm512_rcp14_ps((__m512)below);
        total[j] += x * (top * (r * (2.0f - below * r)));
        continue;
      }
#endif
      total[j] += x * (top / below);
    }
  float found = 0;
  for (int j = 0; j < N; j++) found += total[j][0];
  return found;
}

extern "C" float divided(long times) { return loop<false>(times); }
extern "C" float approximated(long times) { return loop<true>(times); }
"""
_SUMS = 6
_TIMES = 2_000_000


def register_limit() -> dict[str, float] | str:
    """Return billions of pairs x features a second for each loop, or why there are none.

    Returns
    -------
    limits : dict or str
        ``division``; and ``reciprocal``, a refined approximation, where the processor has one.
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
        found = {"division": _rate(loaded.divided, loaded.lanes())}
        if loaded.approximates():
            found["reciprocal"] = _rate(loaded.approximated, loaded.lanes())
        return found


def _rate(loop: Any, lanes: int) -> float:
    loop.restype, loop.argtypes = ctypes.c_float, [ctypes.c_long]
    loop(_TIMES // 10)
    spent = []
    for _ in range(5):
        began = time.process_time()
        loop(_TIMES)
        spent.append(time.process_time() - began)
    return 2 * lanes * _SUMS * _TIMES / min(spent) / 1e9


if __name__ == "__main__":
    print(register_limit())
