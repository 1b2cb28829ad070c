// Where the program finds what belongs to its source tree.
#pragma once

#include <filesystem>

namespace shardproof {

// The folder with the folder `scenarios` that belongs to this program: the one above the build
// folder that holds it or, once installed, share/shardproof beside its bin; else the current
// folder.
std::filesystem::path project_folder();

// Where results go unless the call says otherwise: reports/out of the project folder, or of the
// current folder where the program is installed.
std::filesystem::path results_folder();

}  // namespace shardproof
