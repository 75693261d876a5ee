// SPDX-License-Identifier: Apache-2.0
#pragma once

// A shared library opened at run time; closed by the destructor, after which no symbol of it may be
// called. Move-only; no thread safety of its own.

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace switchyard::fabric {

class DynamicLibrary {
 public:
  // The first of `names` (a path, or a name for the loader's search) that opens. kNotFound holds
  // what the loader said of each.
  [[nodiscard]] static Result<DynamicLibrary> Open(const std::vector<std::string>& names);

  DynamicLibrary(DynamicLibrary&& other) noexcept
      : name_(std::move(other.name_)), handle_(std::exchange(other.handle_, nullptr)) {}
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;
  ~DynamicLibrary();

  // Sets `function` to the symbol `name`; kUnimplemented names library and symbol if it is missing.
  template <typename Function>
  [[nodiscard]] Status Bind(const char* name, Function*& function) const {
    void* symbol = nullptr;
    RETURN_IF_ERROR(Find(name, symbol));
    function = reinterpret_cast<Function*>(symbol);
    return OkStatus();
  }

 private:
  DynamicLibrary(std::string name, void* handle) : name_(std::move(name)), handle_(handle) {}
  [[nodiscard]] Status Find(const char* name, void*& symbol) const;

  std::string name_;
  void* handle_;
};

}  // namespace switchyard::fabric
