// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the simulator's libnvfm.so.1 and its Fabric Manager say to each other over a stream socket:
// WireRequest, then WireReply and `payload_bytes` more, in the machine's own byte order. A
// connection begins with kConnect; each request has one reply. FM's internal endpoint speaks the
// same and refuses every call after the connect, as the real one does.

#include <cstdint>

namespace switchyard::sim {

inline constexpr std::uint32_t kWireMagic = 0x53594d46;  // "FMYS"

enum class WireCall : std::uint32_t {
  kConnect = 1,         // no payload
  kListPartitions = 2,  // payload: fmFabricPartitionList
  // Changes; no payload.
  kActivate = 3,
  kDeactivate = 4,
  kSetActivated = 5,
};

struct WireRequest {
  std::uint32_t magic = kWireMagic;
  WireCall call = WireCall::kConnect;
  std::uint32_t version = 0;  // of the structure that the caller passed to libnvfm, if any
  std::uint32_t count = 0;    // of `ids`: partitions to change
  std::uint32_t ids[64] = {};
};

struct WireReply {
  std::uint32_t magic = kWireMagic;
  std::int32_t code = 0;            // what the function returns
  std::uint32_t crash = 0;          // 1: the library dies with a segmentation fault
  std::uint32_t payload_bytes = 0;  // 0 unless code is 0
};

}  // namespace switchyard::sim
