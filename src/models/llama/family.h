// Llama as a family: model_type "llama".
#pragma once

#include "models/family.h"

namespace shardproof {

ModelFamily llama_family();

}  // namespace shardproof
