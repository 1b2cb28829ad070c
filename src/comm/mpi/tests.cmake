# For harness/CMakeLists.txt, once shardproof_mpi_gtest_main is there.
shardproof_test(
  comm_mpi_test
  SOURCES ${CMAKE_SOURCE_DIR}/src/comm/mpi/mpi_test.cpp
          ${CMAKE_SOURCE_DIR}/src/comm/contract_collectives.cpp
          ${CMAKE_SOURCE_DIR}/src/comm/contract_failures.cpp
  LINKS shardproof::comm_mpi
  RANKS "1;2;4")
