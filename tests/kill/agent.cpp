// SPDX-License-Identifier: Apache-2.0
#include "tests/kill/agent.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/unique_fd.h"

namespace switchyard::kill {
namespace {

using nlohmann::json;

std::vector<pid_t> OwnChildren() {
  std::vector<pid_t> children;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream list(task.path() / "children");
    for (pid_t child; list >> child;) children.push_back(child);
  }
  return children;
}

std::string CommandOf(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/comm"));
  std::string command;
  std::getline(file, command);
  return command;
}

// All of them, and what they leave in turn.
Result<int> AwaitOrphans(absl::Duration patience) {
  int ended = 0;
  for (std::vector<pid_t> children = OwnChildren(); !children.empty(); children = OwnChildren()) {
    for (const pid_t pid : children) {
      const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
      pollfd poll_fd{process.get(), POLLIN, 0};
      const bool gone =
          ::poll(&poll_fd, 1, static_cast<int>(absl::ToInt64Milliseconds(patience))) == 1;
      const std::string command = CommandOf(pid);
      if (!gone) ::kill(pid, SIGKILL);
      (void)::waitpid(pid, nullptr, 0);
      ++ended;
      if (gone) continue;
      return absl::InternalError(absl::StrCat("process ", pid, " (", command,
                                              ") of the agent lives on ",
                                              absl::FormatDuration(patience), " after it"));
    }
  }
  return ended;
}

std::string Tail(const std::string& text, std::size_t lines) {
  std::vector<std::string> all = absl::StrSplit(text, '\n');
  if (all.size() > lines) all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(lines));
  return absl::StrJoin(all, "\n");
}

}  // namespace

Agent::Agent(sim::SimNode& node, std::string binary, std::string config)
    : node_(node), binary_(std::move(binary)), config_(std::move(config)) {}

Status Agent::Start() {
  ASSIGN_OR_RETURN(process_, sim::Process::Start({binary_, "agent", "--config", config_}));
  return OkStatus();
}

Status Agent::AwaitReady() const {
  if (!process_->WaitForLine("event=fabric_up", kPatience))
    return absl::DeadlineExceededError("the agent does not read Fabric Manager");
  const bool ready = node_.kubelet().WaitFor(
      [this] {
        const auto resources = node_.kubelet().Resources();
        const auto found = resources.find(Resource());
        return found != resources.end() && found->second.connected && found->second.allocatable > 0;
      },
      kPatience);
  return ready ? OkStatus() : absl::DeadlineExceededError("kubelet has no healthy devices");
}

Result<int> Agent::Kill() {
  process_->Kill();
  Result<int> orphans = AwaitOrphans(kPatience);
  log_before_ = process_->Output();
  process_.reset();
  const bool noticed = node_.kubelet().WaitFor(
      [this] {
        const auto resources = node_.kubelet().Resources();
        return std::none_of(resources.begin(), resources.end(),
                            [](const auto& resource) { return resource.second.connected; });
      },
      kPatience);
  if (!noticed) return absl::DeadlineExceededError("kubelet does not notice the agent's death");
  return orphans;
}

Status Agent::Stop() {
  const std::optional<int> code = process_->Stop(kPatience);
  log_before_ = process_->Output();
  process_.reset();
  if (code != 0) {
    return absl::InternalError(code ? absl::StrCat("the agent ended with exit code ", *code)
                                    : std::string("the agent did not end on SIGTERM"));
  }
  return AwaitOrphans(kPatience).status();
}

std::string Agent::Resource() const {
  for (const auto& [name, report] : node_.kubelet().Resources()) {
    if (!absl::StrContains(name, "nvswitch")) return name;
  }
  return "";
}

Result<std::string> Agent::Run(std::vector<std::string> arguments) const {
  const std::string command = absl::StrJoin(arguments, " ");
  arguments.insert(arguments.begin(), binary_);
  arguments.insert(arguments.end(), {"-o", "json", "--config", config_});
  ASSIGN_OR_RETURN(const std::unique_ptr<sim::Process> process,
                   sim::Process::Start(std::move(arguments)));
  const std::optional<int> code = process->Wait(kPatience);
  (void)process->WaitForLine("\x01", kPatience);  // until the output's end
  if (code == 0) return process->Output();
  return absl::InternalError(absl::StrCat("`switchyard ", command, "` ended with ",
                                          code.value_or(-1), ": ", process->Output()));
}

Result<std::vector<ShownTenancy>> Agent::Tenancies() const {
  ASSIGN_OR_RETURN(const std::string text, Run({"tenancies"}));
  const json shown = json::parse(text, nullptr, false);
  if (shown.is_discarded() || !shown.contains("tenancies"))
    return absl::InternalError(absl::StrCat("`switchyard tenancies` says ", text));
  std::vector<ShownTenancy> tenancies;
  for (const json& tenancy : shown["tenancies"])
    tenancies.push_back({tenancy["modules"].get<std::set<int>>(), tenancy["active"] == true});
  return tenancies;
}

Status Agent::VerifyJournal() const { return Run({"journal", "verify"}).status(); }

std::string Agent::Log() const {
  constexpr std::size_t kLines = 60;
  return absl::StrCat("the log of the agent before:\n", Tail(log_before_, kLines),
                      "\nthe agent's log:\n",
                      process_ == nullptr ? "(not running)" : Tail(process_->Output(), kLines));
}

}  // namespace switchyard::kill
