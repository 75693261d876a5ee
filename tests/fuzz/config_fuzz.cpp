// SPDX-License-Identifier: Apache-2.0
// The configuration file. What is refused is refused with a bounded message; what is accepted says
// the same again when its values come back as flags.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "agent/config_keys.h"
#include "agent/config_load.h"

namespace {

using switchyard::agent::ConfigInput;
using switchyard::agent::Key;
using switchyard::agent::Keys;

constexpr size_t kMaxErrorBytes = 1024;

void CheckErrors(absl::string_view message) {
  if (message.empty()) std::abort();
  for (const absl::string_view line : absl::StrSplit(message, '\n')) {
    if (line.size() > kMaxErrorBytes || !absl::StartsWith(line, "f:")) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ConfigInput input;
  input.file_name = "f";
  input.file = std::string(reinterpret_cast<const char*>(data), size);
  const auto loaded = switchyard::agent::LoadConfig(input);
  if (!loaded.ok()) {
    CheckErrors(loaded.status().message());
    return 0;
  }
  ConfigInput again;
  for (const Key& key : Keys()) {
    const std::string text = JoinValue(key, key.get(loaded->config));
    // A list or map whose parts hold the separators has no spelling as a flag.
    if (key.kind == switchyard::agent::KeyKind::kText) {
      again.flags.emplace_back(std::string(key.name), text);
    }
  }
  const auto reloaded = switchyard::agent::LoadConfig(again);
  if (!reloaded.ok()) std::abort();
  for (const Key& key : Keys()) {
    if (key.kind == switchyard::agent::KeyKind::kText &&
        key.get(loaded->config).text != key.get(reloaded->config).text) {
      std::abort();
    }
  }
  return 0;
}
