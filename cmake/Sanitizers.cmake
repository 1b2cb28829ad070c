# What the sanitizers of the `asan` preset want to know when tests run; empty under other presets.
# The preset's flags say the rest: undefined behaviour ends the program; null, object-size and vptr
# are not checked, for they cost a third of the compile time, and what the first two would find the
# address sanitizer finds as well.
set(SHARDPROOF_SANITIZED OFF)
if(CMAKE_BUILD_TYPE STREQUAL "Debug" AND CMAKE_CXX_FLAGS_DEBUG MATCHES "-fsanitize=")
  set(SHARDPROOF_SANITIZED ON)
  set(SHARDPROOF_TEST_ENVIRONMENT
      "ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1" "UBSAN_OPTIONS=print_stacktrace=1")
  # Under mpirun no leaks are looked for: Open MPI keeps much of what it allocates.
  set(SHARDPROOF_MPI_TEST_ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0" "UBSAN_OPTIONS=print_stacktrace=1")
endif()
