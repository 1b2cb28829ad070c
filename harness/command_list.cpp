#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "harness/command.h"
#include "harness/locations.h"
#include "harness/scenario_file.h"

namespace shardproof {
namespace {

nlohmann::ordered_json collect(const FamilyRegistry& families) {
  nlohmann::ordered_json json;
  json["scenarios"] = nlohmann::ordered_json::array();
  for (const auto& file : all_scenarios(project_folder() / "scenarios")) {
    nlohmann::ordered_json item = {{"name", file.stem().string()}};
    try {
      const Scenario scenario = read_scenario(file);
      item["claim"] = scenario.claim;
      item["tags"] = scenario.tags;
      item["models"] = nlohmann::ordered_json::array();
      for (const auto& model : scenario.models) item["models"].push_back(model_name(model));
    } catch (
        const InputError& error) {  // such as a model that was not made yet: list it all the same
      item["problem"] = error.what();
    }
    json["scenarios"].push_back(item);
  }
  json["model_families"] = nlohmann::ordered_json::array();
  json["styles"] = nlohmann::ordered_json::object();
  for (const std::string& name : families.names()) {
    json["model_families"].push_back(name);
    const ModelPlans& plans = families.find(name).plans;
    for (const Plan* plan : {&plans.tp, &plans.fsdp})
      for (const PlanRule& rule : *plan)
        json["styles"][rule.style].push_back(name + ": " + rule.pattern);
  }
  return json;
}

void print(const nlohmann::ordered_json& json) {
  std::cout << "scenarios\n";
  for (const auto& item : json["scenarios"]) {
    const bool good = item.contains("claim");
    std::cout << "  " << item["name"].get<std::string>() << ": "
              << item[good ? "claim" : "problem"].get<std::string>() << '\n';
    if (!good) continue;
    std::cout << "      models";
    for (const auto& model : item["models"]) std::cout << ' ' << model.get<std::string>();
    std::cout << "; tags";
    for (const auto& tag : item["tags"]) std::cout << ' ' << tag.get<std::string>();
    std::cout << '\n';
  }
  std::cout << "model families\n";
  for (const auto& name : json["model_families"])
    std::cout << "  " << name.get<std::string>() << '\n';
  std::cout << "styles, and where shipped plans use them\n";
  for (const auto& [style, uses] : json["styles"].items()) {
    std::cout << "  " << style << '\n';
    for (const auto& use : uses) std::cout << "      " << use.get<std::string>() << '\n';
  }
}

}  // namespace

CommandBody command_list(CLI::App& app, const FamilyRegistry& families) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "as JSON");
  return [json, families](const ProgramWorld& world) {
    if (world.rank() != 0) return 0;
    const nlohmann::ordered_json all = collect(families);
    if (*json) {
      std::cout << all.dump(1) << '\n';
    } else {
      print(all);
    }
    return 0;
  };
}

}  // namespace shardproof
