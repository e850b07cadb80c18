// What other families need of strings: Equal compares them as it does numbers.
#pragma once

#include "op.h"

namespace regie::ops {

KernelPtr prepare_equal_strings(Prepare& p);

}  // namespace regie::ops
