// SPDX-License-Identifier: Apache-2.0
#include "fabric/restart_kind.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "fabric/fabric_answer.h"
#include "fabric/fm_errors.h"
#include "fabric/nvfm_codes.h"

namespace switchyard::fabric {
namespace {

constexpr absl::string_view kKey = "FABRIC_MODE_RESTART";
constexpr absl::string_view kProgram = "nv-fabricmanager";
constexpr absl::string_view kFlag = "--restart";
constexpr std::size_t kMaxConfigBytes = 1 << 20;
constexpr std::size_t kMaxCommandLineBytes = 64 << 10;  // longer ones are not Fabric Manager's

// The value of `line` if it sets kKey.
std::optional<absl::string_view> ValueOf(absl::string_view line) {
  line = absl::StripAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, kKey)) return std::nullopt;
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "=")) return std::nullopt;  // another key that begins alike
  return absl::StripLeadingAsciiWhitespace(line);
}

Result<bool> FileSaysRestart(const std::string& config) {
  const Result<std::string> text = ReadFile(config, kMaxConfigBytes);
  if (absl::IsNotFound(text.status())) return false;
  if (!text.ok()) {
    return Annotate(text.status(),
                    "fabric.restart: auto reads Fabric Manager's configuration; let the agent read "
                    "it, or set fabric.restart to warm or cold");
  }
  return ConfigSaysRestart(*text, config);
}

// The process id of a running FM that was started with --restart.
Result<std::optional<std::string>> RestartingProcess(const HostRoot& root) {
  const std::string proc = root.Path("proc");
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(proc));
  for (const std::string& name : names) {
    if (!std::all_of(name.begin(), name.end(), absl::ascii_isdigit)) continue;
    const Result<std::string> line =
        ReadFile(absl::StrCat(proc, "/", name, "/cmdline"), kMaxCommandLineBytes);
    // Not ok: ended meanwhile, or none of FM's.
    if (line.ok() && IsRestartingFabricManager(*line)) return name;
  }
  return std::nullopt;
}

}  // namespace

Result<RestartKind> FindRestartKind(RestartSetting setting, const std::string& config,
                                    const HostRoot& root) {
  if (setting == RestartSetting::kWarm) return RestartKind{true, "fabric.restart is warm"};
  if (setting == RestartSetting::kCold) return RestartKind{false, "fabric.restart is cold"};
  ASSIGN_OR_RETURN(const bool in_file, FileSaysRestart(config));
  if (in_file) return RestartKind{true, absl::StrCat(config, " has ", kKey, "=1")};
  ASSIGN_OR_RETURN(const std::optional<std::string> process, RestartingProcess(root));
  if (process) {
    return RestartKind{true, absl::StrCat(kProgram, " (process ", *process, ") runs with ", kFlag)};
  }
  return RestartKind{false, absl::StrCat("neither ", config, " has ", kKey, "=1 nor does a ",
                                         kProgram, " run with ", kFlag)};
}

Result<bool> ConfigSaysRestart(absl::string_view text, absl::string_view file_name) {
  std::optional<bool> restart;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const std::optional<absl::string_view> value = ValueOf(line);
    if (!value) continue;
    const bool is_one = *value == "1";
    if ((!is_one && *value != "0") || restart.value_or(is_one) != is_one) {
      return absl::InvalidArgumentError(
          absl::StrCat(file_name, ", line ", number, ": ", kKey, " \"", value->substr(0, 64),
                       "\": must be 0 or 1, and only once; correct it, or set fabric.restart to "
                       "warm or cold"));
    }
    restart = is_one;
  }
  return restart.value_or(false);
}

bool IsRestartingFabricManager(absl::string_view command_line) {
  const std::vector<absl::string_view> words = absl::StrSplit(command_line, '\0');
  const absl::string_view program = words.front();
  if (program.substr(program.rfind('/') + 1) != kProgram) return false;
  return std::find(words.begin() + 1, words.end(), kFlag) != words.end();
}

bool MayWaitForActiveList(const Status& read_error, bool endpoint_worked) {
  const std::optional<FabricAnswer> answer = FabricAnswerOf(read_error);
  if (!answer || answer->function != kListFunction) return false;
  switch (answer->code) {
    case nvfm::kNotSupported:
    case nvfm::kVersionMismatch:
    case nvfm::kConnectionNotValid:
      return false;
    case nvfm::kUninitialized:
      return endpoint_worked;
    default:
      return true;
  }
}

}  // namespace switchyard::fabric
