// SPDX-License-Identifier: Apache-2.0
#include "sim/kubelet/registration_server.h"

#include <grpcpp/grpcpp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "k8s_deviceplugin_v1beta1.grpc.pb.h"
#include "sim/kubelet/server.h"

namespace switchyard::sim {

Status DeleteSockets(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folder));
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(folder, "/", name);
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) continue;
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
      return ErrnoError(errno, absl::StrCat("deleting ", path));
    }
  }
  return OkStatus();
}

class RegistrationServer::Service final : public v1beta1::Registration::Service {
 public:
  Service(std::string folder, PluginRegistry& registry, Faults& faults, CallLog& log)
      : folder_(std::move(folder)), registry_(registry), faults_(faults), log_(log) {}

  Status Start() {
    grpc::ServerBuilder builder;
    builder.RegisterService(this);
    ASSIGN_OR_RETURN(server_, StartServer(builder, absl::StrCat(folder_, "/kubelet.sock")));
    return OkStatus();
  }

  void Stop() { StopServer(std::move(server_)); }

  grpc::Status Register(grpc::ServerContext* /*context*/, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty* /*response*/) override {
    log_.Count(&CallCounts::registers);
    const Status status = Handle(*request);
    // kubelet's errors carry no code: grpc-go sends Unknown.
    return status.ok() ? grpc::Status::OK
                       : grpc::Status(grpc::StatusCode::UNKNOWN, std::string(status.message()));
  }

 private:
  Status Handle(const v1beta1::RegisterRequest& request) {
    if (request.version() != "v1beta1") {
      return absl::InvalidArgumentError(absl::StrCat("the device plugin's API version \"",
                                                     request.version(),
                                                     "\" is not supported; supported: v1beta1"));
    }
    RETURN_IF_ERROR(CheckResourceName(request.resource_name()));
    if (faults_.TakeFailure()) return absl::UnavailableError("this Register was made to fail");
    faults_.AwaitDialBack();
    return registry_.Connect(request.resource_name(),
                             absl::StrCat(folder_, "/", request.endpoint()),
                             !faults_.TakeWithheldStream());
  }

  const std::string folder_;
  PluginRegistry& registry_;
  Faults& faults_;
  CallLog& log_;
  std::unique_ptr<grpc::Server> server_;
};

RegistrationServer::RegistrationServer(std::string folder, PluginRegistry& registry, Faults& faults,
                                       CallLog& log)
    : service_(std::make_unique<Service>(std::move(folder), registry, faults, log)) {}

RegistrationServer::~RegistrationServer() { Stop(); }

Status RegistrationServer::Start() { return service_->Start(); }

void RegistrationServer::Stop() { service_->Stop(); }

}  // namespace switchyard::sim
