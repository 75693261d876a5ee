// SPDX-License-Identifier: Apache-2.0
#pragma once

// A folder of sysfs held open, and what is read relative to it: the hot path of Allocate builds no
// long paths and, should the device be replaced meanwhile, never mixes two devices' files. Errors
// name the file only (the caller knows path()) and keep errno's code. Move-only; any thread.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"

namespace switchyard::pci {

class Folder {
 public:
  // kNotFound if it is not there; a link that leads nowhere counts as that.
  [[nodiscard]] static Result<Folder> Open(std::string path);
  [[nodiscard]] Result<Folder> OpenChild(const std::string& name) const;

  [[nodiscard]] const std::string& path() const { return path_; }

  // The kernel gives each folder of sysfs a number of its own for as long as it is there.
  [[nodiscard]] Result<std::uint64_t> Inode() const;
  // A sysfs attribute without the white space at its end. kOutOfRange from 4 KiB on: the kernel
  // gives no attribute more than a page.
  [[nodiscard]] Result<std::string> Read(const char* name) const;
  [[nodiscard]] static Result<std::string> ReadPath(const std::string& path);
  // The last component of a symbolic link's target, which need not exist. kNotFound without the
  // link, kFailedPrecondition if `name` is something else.
  [[nodiscard]] Result<std::string> LinkName(const char* name) const;
  [[nodiscard]] static Result<std::string> LinkNameOfPath(const std::string& path);
  // Names in the folder `name` ("." for this one), sorted, without "." and "..".
  [[nodiscard]] Result<std::vector<std::string>> List(const char* name) const;
  // The static ones: where the folder need not be opened for anything else.
  [[nodiscard]] static Result<std::vector<std::string>> ListPath(const std::string& path);
  // Something is there and, if it is a link, leads somewhere.
  [[nodiscard]] bool Has(const std::string& name) const;

 private:
  Folder(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  UniqueFd fd_;  // O_PATH
};

}  // namespace switchyard::pci
