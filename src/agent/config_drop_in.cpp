// SPDX-License-Identifier: Apache-2.0
// The environment that manifests have anyway: of the two device plugins that this agent replaces,
// where it goes on meaning what it meant, and NODE_NAME.
#include "absl/strings/str_cat.h"
#include "agent/config_sources.h"
#include "agent/config_values.h"

namespace switchyard::agent {
namespace {

class Reader {
 public:
  Reader(const Environment& environment, const std::function<bool(absl::string_view)>& decided)
      : environment_(environment), decided_(decided) {}

  // What a manifest usually calls the downward API's spec.nodeName.
  void ReadNodeName() {
    if (const std::string* name = Find("NODE_NAME"); HasText(name)) {
      Set("kubernetes.nodeName", "NODE_NAME", *name);
    }
  }

  DropIn ReadKubevirt() {
    if (IsEnabled()) {
      Set("fabric.mode", "ENABLE_FABRIC_MANAGER", "enforce");
      Set("fabric.address", "ENABLE_FABRIC_MANAGER", "unix:/run/nvidia-fabricmanager/socket");
    }
    return std::move(result_);
  }

  DropIn ReadKata() {
    const bool enabled = IsEnabled();
    if (enabled) {
      Set("fabric.mode", "ENABLE_FABRIC_MANAGER", "advise");
      Set("fabric.policy", "ENABLE_FABRIC_MANAGER", "lowest-id");
    }
    if (enabled && !decided_("fabric.policy")) {
      result_.notes.emplace_back(
          "ENABLE_FABRIC_MANAGER=true keeps the former choice of partitions (fabric.policy "
          "lowest-id); fabric.policy pack is recommended: it keeps large partitions whole");
    }
    ReadAddress();
    if (const std::string* path = Find("GPU_PCI_MODULE_MAPPING_PATH"); HasText(path)) {
      Set("fabric.moduleMap", "GPU_PCI_MODULE_MAPPING_PATH", Value{"", {*path}, {}});
    }
    // Set but empty has a meaning of its own: one name for each model.
    if (const std::string* name = Find("P_GPU_ALIAS"); name != nullptr) {
      Set("resources.aliases.gpu", "P_GPU_ALIAS", *name);
    }
    if (const std::string* name = Find("NVSWITCH_ALIAS"); name != nullptr) {
      Set("resources.aliases.nvswitch", "NVSWITCH_ALIAS", *name);
    }
    return std::move(result_);
  }

 private:
  const std::string* Find(const std::string& name) const {
    const auto it = environment_.find(name);
    return it == environment_.end() ? nullptr : &it->second;
  }
  static bool HasText(const std::string* text) { return text != nullptr && !text->empty(); }

  void Error(absl::string_view name, absl::string_view message) {
    result_.settings.AddError(absl::StrCat("environment ", name, ": ", message));
  }
  void Set(absl::string_view key, absl::string_view name, Value value) {
    result_.settings.settings.push_back(
        {FindKey(key), std::move(value), absl::StrCat("environment ", name)});
  }
  void Set(absl::string_view key, absl::string_view name, std::string text) {
    Set(key, name, Value{std::move(text), {}, {}});
  }

  bool IsEnabled() {
    const std::string* text = Find("ENABLE_FABRIC_MANAGER");
    if (!HasText(text) || *text == "false") return false;
    if (*text == "true") return true;
    Error("ENABLE_FABRIC_MANAGER", absl::StrCat(Quote(*text), " is not one of true | false"));
    return false;
  }

  void ReadAddress() {
    const std::string* address = Find("FM_ADDRESS");
    const std::string* type = Find("FM_ADDRESS_TYPE");
    const bool is_unix = HasText(type) && *type == "unix";
    if (HasText(type) && !is_unix && *type != "inet") {
      return Error("FM_ADDRESS_TYPE", absl::StrCat(Quote(*type), " is not one of inet | unix"));
    }
    if (HasText(address)) {
      Set("fabric.address", "FM_ADDRESS", absl::StrCat(is_unix ? "unix:" : "", *address));
    } else if (is_unix) {
      Error("FM_ADDRESS_TYPE", "unix needs the socket's path in FM_ADDRESS");
    }
  }

  const Environment& environment_;
  const std::function<bool(absl::string_view)>& decided_;
  DropIn result_;
};

}  // namespace

DropIn FromDropInEnvironment(Consumer consumer, const Environment& environment,
                             const std::function<bool(absl::string_view)>& decided) {
  Reader reader(environment, decided);
  reader.ReadNodeName();
  return consumer == Consumer::kKata ? reader.ReadKata() : reader.ReadKubevirt();
}

}  // namespace switchyard::agent
