// The toy as a family: model_type "recency".
#pragma once

#include "models/family.h"

namespace recency {

shardproof::ModelFamily family();

}  // namespace recency
