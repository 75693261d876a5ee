// SPDX-License-Identifier: Apache-2.0
// The helper as a program of its own, for tests: fabric_helper_test [FILE]. Its process id becomes
// a line of FILE, so that a test can count starts. The product's own is `switchyard fabric-helper`.
#include <unistd.h>

#include <fstream>

#include "fabric/helper.h"

int main(int argc, char** argv) {
  if (argc > 1) std::ofstream(argv[1], std::ios::app) << ::getpid() << "\n";
  return switchyard::fabric::RunFabricHelper(3);
}
