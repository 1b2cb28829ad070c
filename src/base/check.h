// The four contract words. Each takes a condition and a fmt format with its arguments; the message
// states the problem (the values, why they are wrong) and what to do.
//   SP_EXPECT    the caller's duty                      -> ContractError
//   SP_ENSURE    the callee's own promise               -> ContractError
//   SP_ASSERT    internal consistency                   -> ContractError
//   SP_VALIDATE  what a user gave (file, key, layout)   -> InputError
// All are always on.
#pragma once

#include <fmt/format.h>

#include "base/error.h"

namespace shardproof::detail {
[[noreturn]] void contract_failed(const char* word, const char* condition, const char* file,
                                  int line, const std::string& message);
}  // namespace shardproof::detail

#define SP_CONTRACT_(word, condition, ...)                                        \
  do {                                                                            \
    if (!(condition)) [[unlikely]]                                                \
      ::shardproof::detail::contract_failed(word, #condition, __FILE__, __LINE__, \
                                            ::fmt::format(__VA_ARGS__));          \
  } while (false)

#define SP_EXPECT(condition, ...) SP_CONTRACT_("expect", condition, __VA_ARGS__)
#define SP_ENSURE(condition, ...) SP_CONTRACT_("ensure", condition, __VA_ARGS__)
#define SP_ASSERT(condition, ...) SP_CONTRACT_("assert", condition, __VA_ARGS__)
#define SP_VALIDATE(condition, ...)                               \
  do {                                                            \
    if (!(condition)) [[unlikely]]                                \
      throw ::shardproof::InputError(::fmt::format(__VA_ARGS__)); \
  } while (false)
