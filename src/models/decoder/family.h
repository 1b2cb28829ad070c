// Families that are a decoder with options of their own.
#pragma once

#include "models/decoder/options.h"
#include "models/family.h"

namespace shardproof {

// `parse`: from the text of config.json (`origin` names it in errors); throws InputError.
ModelFamily decoder_family(
    std::string model_type,
    std::function<DecoderOptions(const std::string& json, const std::string& origin)> parse,
    ModelPlans plans, WeightMap weights = {});

}  // namespace shardproof
