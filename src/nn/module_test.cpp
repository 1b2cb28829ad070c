#include "nn/module.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/test_errors.h"

namespace shardproof {
namespace {

// left - right, where right is optional; one parameter, which may be shared.
class Minus final : public Module {
 public:
  explicit Minus(ParamPtr weight = nullptr)
      : Module("Minus", {.inputs = {{"left"}, {"right", false}}}) {
    add_parameter(
        "weight",
        weight ? weight : std::make_shared<Parameter>(std::vector<int64_t>{2}, std::vector{Cut{}}));
  }

 protected:
  NamedTensors forward(const NamedTensors& inputs) override {
    const at::Tensor left = inputs.at("left");
    return {{"output", inputs.has("right") ? left - inputs.at("right") : left}};
  }
};

class Pair final : public Module {
 public:
  Pair() : Module("Pair", {.inputs = {{"x"}}}) {
    auto first = add_child("layers.0", std::make_shared<Minus>());
    add_child("layers.1", std::make_shared<Minus>(first->parameter("weight")));
  }

 protected:
  NamedTensors forward(const NamedTensors& inputs) override { return {{"output", inputs.at("x")}}; }
};

class Scribe final : public ModuleHook {
 public:
  Scribe(std::string name, std::vector<std::string>& log) : name_(std::move(name)), log_(log) {}
  void before(Module&, NamedTensors& inputs) override {
    for (const auto& [name, tensor] : inputs) log_.push_back(name_ + " before " + name);
  }
  void after(Module&, NamedTensors& outputs) override {
    log_.push_back(name_ + " after");
    outputs.at("output") = outputs.at("output") * 2;
  }

 private:
  std::string name_;
  std::vector<std::string>& log_;
};

at::Tensor scalar(double value) { return at::scalar_tensor(value, at::kDouble); }

TEST(Module, PositionalAndNamedInputsAreTheSame) {
  Minus module;
  const auto value = [&](const std::vector<at::Tensor>& positional, const NamedTensors& named) {
    return Module::only(module.call(positional, named)).item<double>();
  };
  EXPECT_EQ(value({scalar(5), scalar(3)}, {}), 2);
  EXPECT_EQ(value({scalar(5)}, {{"right", scalar(3)}}), 2);
  EXPECT_EQ(value({}, {{"right", scalar(3)}, {"left", scalar(5)}}), 2);
  EXPECT_EQ(value({scalar(5), at::Tensor()}, {{"right", scalar(3)}}), 2);
  EXPECT_EQ(value({scalar(5)}, {{"right", at::Tensor()}}), 5);
  EXPECT_EQ(module(scalar(4)).item<double>(), 4);
}

TEST(Module, MistakesInACallAreNamed) {
  Pair root;
  root.finish();
  Module& module = *root.children()[1].second;
  const auto has = [](const std::string& message, const std::string& part) {
    return message.find("layers.1 (Minus)") != message.npos && message.find(part) != message.npos;
  };
  std::string message = error_of([&] { module.call({}, {{"right", scalar(1)}}); });
  EXPECT_TRUE(has(message, "required input 'left' was not given")) << message;
  message = error_of([&] { module.call({scalar(1)}, {{"left", scalar(1)}}); });
  EXPECT_TRUE(has(message, "'left' was given twice")) << message;
  message = error_of([&] { module.call({}, {{"left", scalar(1)}, {"left", scalar(1)}}); });
  EXPECT_TRUE(has(message, "'left' was given 2 times")) << message;
  message = error_of([&] { module.call({scalar(1)}, {{"rihgt", scalar(1)}}); });
  EXPECT_TRUE(has(message, "no input 'rihgt'; its inputs are left, right")) << message;
  message = error_of([&] { module.call({scalar(1), scalar(1), scalar(1)}); });
  EXPECT_TRUE(has(message, "3 positional inputs")) << message;
}

TEST(Module, HooksSeeNamesAndTheLastAddedIsOutermost) {
  Minus module;
  std::vector<std::string> log;
  module.add_hook(std::make_shared<Scribe>("inner", log));
  module.add_hook(std::make_shared<Scribe>("outer", log));

  const at::Tensor output = Module::only(module.call({scalar(5)}, {{"right", scalar(3)}}));

  EXPECT_EQ(
      log, (std::vector<std::string>{"outer before left", "outer before right", "inner before left",
                                     "inner before right", "inner after", "outer after"}));
  EXPECT_EQ(output.item<double>(), 8);
  module.clear_hooks();
  EXPECT_EQ(module(scalar(5)).item<double>(), 5);
}

TEST(Module, FinishSetsPathsAndNames) {
  Pair root;

  root.finish();
  root.finish();

  std::vector<std::string> paths;
  for (Module* module : root.modules()) paths.push_back(module->path());
  EXPECT_EQ(paths, (std::vector<std::string>{"", "layers.0", "layers.1"}));
  ASSERT_EQ(root.all_parameters().size(), 1);
  EXPECT_EQ(root.all_parameters()[0]->names(),
            (std::vector<std::string>{"layers.0.weight", "layers.1.weight"}));
  EXPECT_EQ(root.all_parameters()[0]->name(), "layers.0.weight");
  EXPECT_EQ(root.parameter("weight"), nullptr);
}

TEST(NamedTensors, MissingOnesAreUndefinedOrRefused) {
  NamedTensors tensors = {{"a", scalar(1)}, {"b", at::Tensor()}};
  EXPECT_TRUE(tensors.has("a"));
  EXPECT_FALSE(tensors.has("b"));
  EXPECT_FALSE(tensors.get("c").defined());
  EXPECT_THROW(tensors.at("c"), ContractError);
  tensors.set("a", scalar(2));
  tensors.set("c", scalar(3));
  EXPECT_EQ(tensors.at("a").item<double>(), 2);
  EXPECT_EQ(tensors.size(), 3);
}

}  // namespace
}  // namespace shardproof
