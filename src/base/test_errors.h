// For tests of all layers: what an error says.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"

namespace shardproof {

// The message of the InputError that `act` throws; "no InputError" where it throws none.
inline std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no InputError";
}

}  // namespace shardproof
