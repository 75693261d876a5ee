// SPDX-License-Identifier: Apache-2.0
#include "tests/node/node_test.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "sim/node/namespaces.h"

namespace switchyard::sim {
namespace {

std::string Binary() { return SWITCHYARD_BIN_DIR "/switchyard"; }

}  // namespace

void NodeTest::SetUp() {
  if (CanMakeNamespaces()) {
    const Status entered = EnterNamespaces({});
    ASSERT_TRUE(entered.ok()) << entered;
    uevents_ = true;
  }
  char folder[] = "/tmp/sy-node-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  folder_ = folder;
}

void NodeTest::TearDown() {
  if (HasFailure() && agent_ != nullptr)
    std::cerr << "the agent's log:\n" << agent_->Output() << "\n";
  agent_.reset();
  node_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void NodeTest::MakeNode(SimNodeOptions options) {
  options.dir = folder_;
  options.uevents = uevents_;
  auto node = SimNode::Create(std::move(options));
  ASSERT_TRUE(node.ok()) << node.status();
  node_ = *std::move(node);
}

void NodeTest::StartAgent(const YamlOverrides& overrides, bool wait) {
  YamlOverrides values = {{"http.address", "\"127.0.0.1:0\""}, {"fabric.probeInterval", "500ms"}};
  for (const auto& [key, value] : overrides) values[key] = value;
  const std::string config = folder_ + "/test.yaml";
  ASSERT_TRUE(WriteFileAtomically(config, node_->AgentYaml(values)).ok());
  auto agent = Process::Start({Binary(), "agent", "--config", config});
  ASSERT_TRUE(agent.ok()) << agent.status();
  agent_ = *std::move(agent);
  if (!wait) return;
  ASSERT_TRUE(WaitForKubelet([this] {
    const auto resources = node_->kubelet().Resources();
    if (resources.empty()) return false;
    for (const auto& [name, report] : resources) {
      if (!report.connected || report.capacity == 0) return false;
    }
    return true;
  }));
}

bool NodeTest::WaitForKubelet(const std::function<bool()>& done) {
  return node_->kubelet().WaitFor(done, kPatience);
}

std::string NodeTest::WaitForLog(const std::string& text) {
  const std::optional<std::string> line = agent_->WaitForLine(text, kPatience);
  EXPECT_TRUE(line.has_value()) << "no log line with: " << text;
  return line.value_or("");
}

std::string NodeTest::Resource() const {
  for (const auto& [name, report] : node_->kubelet().Resources()) {
    if (!absl::StrContains(name, "nvswitch")) return name;
  }
  return "";
}

ResourceReport NodeTest::Report() const {
  const auto resources = node_->kubelet().Resources();
  const auto found = resources.find(Resource());
  return found == resources.end() ? ResourceReport{} : found->second;
}

PodStatus NodeTest::AddPod(const std::string& name, int gpus) {
  PodSpec spec;
  spec.name = name;
  spec.containers.push_back({"compute", false, false, {{Resource(), gpus}}});
  return node_->kubelet().AddPod(spec);
}

std::set<int> NodeTest::Modules(const PodStatus& pod) const {
  std::set<int> modules;
  if (pod.containers.empty()) return modules;
  for (const auto& [resource, ids] : pod.containers[0].devices) {
    for (const std::string& id : ids) {
      for (const BoardDevice& device : node_->board().devices) {
        if (device.address.ToString() == id) modules.insert(device.module);
      }
    }
  }
  return modules;
}

std::optional<int> NodeTest::PartitionOf(const std::set<int>& modules) const {
  for (const BoardPartition& partition : node_->board().partitions) {
    if (std::set<int>(partition.modules.begin(), partition.modules.end()) == modules) {
      return partition.id;
    }
  }
  return std::nullopt;
}

std::string NodeTest::Get(const std::string& target) const {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::strncpy(to.sun_path, node_->paths().agent_socket().c_str(), sizeof(to.sun_path) - 1);
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)) != 0)
    return "no connection";
  const std::string request =
      absl::StrCat("GET ", target, " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  if (::send(fd.get(), request.data(), request.size(), 0) < 0) return "not sent";
  std::string answer;
  char buffer[4096];
  for (ssize_t got; (got = ::recv(fd.get(), buffer, sizeof(buffer), 0)) > 0;) {
    answer.append(buffer, static_cast<std::size_t>(got));
  }
  const std::size_t body = answer.find("\r\n\r\n");
  if (body == std::string::npos) return answer;
  return absl::StrCat(answer.substr(std::strlen("HTTP/1.1 "), 3), " ", answer.substr(body + 4));
}

NodeTest::Finished NodeTest::RunBinary(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), Binary());
  auto process = Process::Start(std::move(arguments));
  EXPECT_TRUE(process.ok()) << process.status();
  Finished finished;
  finished.code = (*process)->Wait(kPatience).value_or(-1);
  // The output has ended when no line can come any more.
  (void)(*process)->WaitForLine("\x01", kPatience);
  finished.output = (*process)->Output();
  return finished;
}

}  // namespace switchyard::sim
