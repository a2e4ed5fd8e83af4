// All of the library for one instruction set.
//
// This file is compiled once for each, under a name and with a vector length that the build
// gives (REGARD_VARIANT, REGARD_LANES); dispatch.cpp chooses at run time.

#include "attend.h"
#include "gates.h"
#include "gradients.h"
#include "interface.h"
#include "scores.h"
#include "step.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

extern const __attribute__((visibility("hidden"))) Functions JOIN(regard_, REGARD_VARIANT);
const Functions JOIN(regard_, REGARD_VARIANT) = {
    forward,      backward,      attend,      softmax_backward, prepare,
    step_forward, step_backward, gru_forward, gru_backward,
};
