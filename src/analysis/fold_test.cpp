#include "analysis/fold.h"

#include <gtest/gtest.h>

namespace shardproof {
namespace {

TEST(Fold, NamesOfOnePattern) {
  EXPECT_EQ(starred("model.layers.12.mlp.w1").pattern, "model.layers.*.mlp.w1");
  EXPECT_EQ(starred("model.layers.12.mlp.w1").numbers, std::vector<int64_t>{12});
  EXPECT_EQ(folded(std::vector<std::string>{"a.0.b", "a.1.b", "a.2.b", "a.5.b"}), "a.{0..2,5}.b");
  EXPECT_EQ(folded(std::vector<std::string>{"a.3.b"}), "a.3.b");
  EXPECT_EQ(folded(std::vector<std::string>{"a.0.e.0", "a.0.e.1", "a.1.e.0", "a.1.e.1"}),
            "a.{0..1}.e.{0..1}");
  EXPECT_EQ(folded(std::vector<std::string>{"lm_head"}), "lm_head");
}

TEST(Fold, FindingsThatDifferInLayersOnly) {
  const auto note = [](std::string message) {
    return Finding{Finding::Severity::kNote, "c", {}, "", std::move(message)};
  };
  Finding error = note("an error");
  error.severity = Finding::Severity::kError;
  const Findings findings = folded({note("at a.0.b: 3 of 4"), note("at a.1.b: 3 of 4"),
                                    note("at a.1.b: 2 of 4"), error, note("at a.7.b: 3 of 4")});
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(findings[0].message, "an error");
  EXPECT_EQ(findings[1].message, "at a.0.b: 3 of 4 (and 2 more like this, in other layers)");
  EXPECT_EQ(findings[2].message, "at a.1.b: 2 of 4");
}

TEST(Fold, PartsOfNumbersAndOriginsAreNoLayers) {
  const auto note = [](std::string message) {
    return Finding{Finding::Severity::kNote, "c", {}, "", std::move(message)};
  };
  EXPECT_EQ(folded({note("12.5 %"), note("12.7 %")}).size(), 2u);
  EXPECT_EQ(folded({note("p.toml:1: x"), note("p.toml:2: x")}).size(), 2u);
}

}  // namespace
}  // namespace shardproof
