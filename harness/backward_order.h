// The order in which backward reaches the parameters.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nn/parameter.h"

namespace shardproof {

// Notes each parameter's canonical name as its gradient arrives, for as long as the result is held.
std::shared_ptr<const std::vector<std::string>> note_backward_order(
    const std::vector<ParamPtr>& params);

}  // namespace shardproof
