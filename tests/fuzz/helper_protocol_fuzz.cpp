// SPDX-License-Identifier: Apache-2.0
// Any bytes as what agent and helper say to each other: refused, or something that keeps its rules
// and comes back the same when it is written and read again. A vendor library lives in the helper.
#include <cstdint>
#include <cstdlib>

#include "fabric/fabric_answer.h"
#include "fabric/helper_list.h"
#include "fabric/helper_protocol.h"

namespace fabric = switchyard::fabric;

namespace {

void CheckRequest(absl::string_view text) {
  const auto request = fabric::DecodeRequest(text);
  if (!request.ok()) return;
  const auto again = fabric::DecodeRequest(fabric::EncodeRequest(*request));
  if (!again.ok() || again->call != request->call || again->library != request->library ||
      again->address.ToString() != request->address.ToString() ||
      again->connect_timeout != request->connect_timeout) {
    std::abort();
  }
  if (request->call != fabric::HelperRequest::Call::kChange) return;
  if (!request->change.Validate().ok()) std::abort();
  if (again->change.kind != request->change.kind ||
      again->change.partitions != request->change.partitions) {
    std::abort();
  }
}

void CheckReply(absl::string_view text) {
  const auto reply = fabric::DecodeReply(text);
  if (!reply.ok()) {
    const auto answer = fabric::FabricAnswerOf(reply.status());
    if (answer && answer->code == 0) std::abort();
  }
  const auto again = fabric::DecodeReply(fabric::EncodeReply(reply));
  if (again.ok() != reply.ok() || again.status() != reply.status()) std::abort();
  if (reply.ok() && *again != *reply) std::abort();
}

void CheckList(absl::string_view bytes) {
  const auto list = fabric::DecodeList(bytes);
  if (!list.ok()) return;
  if (!list->Validate().ok()) std::abort();
  const auto again = fabric::DecodeList(fabric::EncodeList(*list));
  if (!again.ok() || *again != *list) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  CheckRequest(text);
  CheckReply(text);
  CheckList(text);
  const auto modules = fabric::DecodeModules(text);
  if (!modules.ok()) return 0;
  const auto again = fabric::DecodeModules(fabric::EncodeModules(*modules));
  if (!again.ok() || *again != *modules) std::abort();
  return 0;
}
