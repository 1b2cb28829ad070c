// The program `shardproof` with the model families that this project ships.
#include "harness/program.h"

int main(int argc, char** argv) {
  return shardproof::shardproof_main(argc, argv, shardproof::shipped_families());
}
