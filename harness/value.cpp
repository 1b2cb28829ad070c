#include "harness/value.h"

#include <array>

#include "base/check.h"

namespace shardproof {
namespace {

constexpr std::array kKinds = {Kind::kOutput,    Kind::kLoss,   Kind::kGradient, Kind::kNorm,
                               Kind::kParameter, Kind::kMoment, Kind::kTokens,   Kind::kMargins};

}  // namespace

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::kOutput:
      return "output";
    case Kind::kLoss:
      return "loss";
    case Kind::kGradient:
      return "gradient";
    case Kind::kNorm:
      return "norm";
    case Kind::kParameter:
      return "parameter";
    case Kind::kMoment:
      return "moment";
    case Kind::kTokens:
      return "tokens";
    case Kind::kMargins:
      return "margins";
  }
  return "?";
}

Kind kind_from_name(const std::string& name) {
  std::vector<std::string> known;
  for (const Kind kind : kKinds) {
    if (name == kind_name(kind)) return kind;
    known.emplace_back(kind_name(kind));
  }
  throw InputError(
      fmt::format("'{}' is no kind of value; there are {}", name, fmt::join(known, ", ")));
}

std::string ValueKey::to_string() const {
  return fmt::format("{} of {}, step {}", kind_name(kind), name, step);
}

}  // namespace shardproof
