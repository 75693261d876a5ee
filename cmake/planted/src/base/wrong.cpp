// SPDX-License-Identifier: Apache-2.0
// A planted violation: house.includes_finds_a_planted_one must fail on it.
#include "kube/anything.h"
