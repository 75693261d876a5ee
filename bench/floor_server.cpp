// SPDX-License-Identifier: Apache-2.0
// floor_server SOCKET: the least a device plugin can be. Every call is answered with an empty
// message. Prints "listening" when it is; runs until it is killed.

#include <grpcpp/grpcpp.h>

#include <cstdio>

#include "k8s_deviceplugin_v1beta1.grpc.pb.h"

namespace {

class EmptyPlugin final : public v1beta1::DevicePlugin::Service {
  grpc::Status GetPreferredAllocation(grpc::ServerContext*,
                                      const v1beta1::PreferredAllocationRequest*,
                                      v1beta1::PreferredAllocationResponse*) override {
    return grpc::Status::OK;
  }
  grpc::Status Allocate(grpc::ServerContext*, const v1beta1::AllocateRequest*,
                        v1beta1::AllocateResponse*) override {
    return grpc::Status::OK;
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: floor_server SOCKET\n");
    return 2;
  }
  EmptyPlugin plugin;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + std::string(argv[1]), grpc::InsecureServerCredentials());
  builder.RegisterService(&plugin);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::puts("listening");
  std::fflush(stdout);
  server->Wait();
}
