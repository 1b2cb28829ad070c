// The program `shardproof` with one more model family.
#include "harness/program.h"
#include "recency/family.h"

int main(int argc, char** argv) {
  shardproof::FamilyRegistry families = shardproof::shipped_families();
  families.add(recency::family());
  return shardproof::shardproof_main(argc, argv, families);
}
