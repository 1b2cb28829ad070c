#include "harness/locations.h"

namespace shardproof {
namespace {

namespace fs = std::filesystem;

// Above the folder that holds this program; empty where the system does not say.
fs::path above_program() {
  std::error_code none;
  const fs::path program = fs::read_symlink("/proc/self/exe", none);
  return none ? fs::path() : program.parent_path().parent_path();
}

bool has_scenarios(const fs::path& folder) { return fs::is_directory(folder / "scenarios"); }

fs::path installed_folder() { return above_program() / "share" / "shardproof"; }

}  // namespace

fs::path project_folder() {
  for (const fs::path& folder : {above_program(), installed_folder()})
    if (!folder.empty() && has_scenarios(folder)) return folder;
  return fs::current_path();
}

fs::path results_folder() {
  const fs::path project = project_folder();
  return (project == installed_folder() ? fs::current_path() : project) / "reports" / "out";
}

}  // namespace shardproof
