// A world of one rank.
#pragma once

#include <string>

#include "comm/communicator.h"

namespace shardproof {

CommPtr make_self_communicator(const std::string& name = "self");

}  // namespace shardproof
