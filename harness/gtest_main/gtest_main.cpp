// The main of test programs that run under mpirun: exit status 0 where every test passed on every
// rank, 1 where one failed on any rank or none ran, 3 where a rank was lost.
#include <gtest/gtest.h>

#include <iostream>

#include "harness/gtest_main/agreeing_listener.h"

int main(int argc, char** argv) {
  using namespace shardproof;
  ProgramWorld world(argc, argv);
  try {
    testing::InitGoogleTest(&argc, argv);
    testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
    if (world.rank() != 0) {  // output and XML come from rank 0 alone
      delete listeners.Release(listeners.default_result_printer());
      delete listeners.Release(listeners.default_xml_generator());
    }
    listeners.Append(new AgreeingListener(world, {}));
    int result = RUN_ALL_TESTS();
    if (testing::UnitTest::GetInstance()->test_to_run_count() == 0) {
      if (world.rank() == 0) std::cerr << "no tests ran: that is a failure\n";
      result = 1;
    }
    return static_cast<int>(world.agreed_max(result));
  } catch (const std::exception& error) {
    world.break_off(error.what());
  }
}
