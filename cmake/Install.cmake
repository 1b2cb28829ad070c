# cmake --install BUILD --prefix PREFIX: headers, the libraries of all layers and of the harness, the
# program with its scenarios, and a package: find_package(shardproof), targets shardproof::base ...
# shardproof::train, shardproof::comm_mpi, shardproof::harness, shardproof::program and
# shardproof::mpi_gtest_main.
include(CMakePackageConfigHelpers)

set(package_dir lib/cmake/shardproof)
set(data_dir share/shardproof)

set(targets ${SHARDPROOF_LAYERS} flags comm_mpi program_world agreeing_listener mpi_gtest_main harness program)
foreach(name IN LISTS targets)
  set_target_properties(shardproof_${name} PROPERTIES EXPORT_NAME ${name})
endforeach()
list(TRANSFORM targets PREPEND shardproof_)
install(TARGETS ${targets} EXPORT shardproof ARCHIVE DESTINATION lib)
# CMAKE_INSTALL_RPATH_USE_LINK_PATH leaves out what lies inside the source tree, as .venv does.
set_target_properties(shardproof PROPERTIES INSTALL_RPATH ${TORCH_INSTALL_PREFIX}/lib)
install(TARGETS shardproof RUNTIME DESTINATION bin)
install(EXPORT shardproof NAMESPACE shardproof:: DESTINATION ${package_dir} FILE shardproofTargets.cmake)

foreach(folder src/ harness)
  install(DIRECTORY ${folder} DESTINATION include/shardproof FILES_MATCHING PATTERN "*.h"
          PATTERN "*_test.h" EXCLUDE PATTERN "test_*.h" EXCLUDE PATTERN "*_test_support.h" EXCLUDE
          PATTERN "contract_cases.h" EXCLUDE PATTERN "pch.h" EXCLUDE)
endforeach()
install(FILES harness/gtest_main/test_world.h DESTINATION include/shardproof/harness/gtest_main)

install(PROGRAMS harness/mpirun DESTINATION libexec/shardproof)
install(DIRECTORY scenarios fixtures DESTINATION ${data_dir} PATTERN smollm2.toml EXCLUDE
        PATTERN generate_smollm2.toml EXCLUDE)  # of a model that only a checkout makes

configure_package_config_file(cmake/shardproofConfig.cmake.in
                              ${CMAKE_CURRENT_BINARY_DIR}/shardproofConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/shardproofConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/shardproofConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/shardproofConfigVersion.cmake
        DESTINATION ${package_dir})
