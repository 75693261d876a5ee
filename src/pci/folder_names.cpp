// SPDX-License-Identifier: Apache-2.0
#include "pci/folder_names.h"

#include <dirent.h>

#include <cerrno>

#include "absl/strings/string_view.h"

namespace switchyard::pci {

int ForEachName(int folder, absl::FunctionRef<bool(const char*)> each) {
  alignas(dirent64) char buffer[4096];
  while (true) {
    const ssize_t got = ::getdents64(folder, buffer, sizeof(buffer));
    if (got < 0) return errno;
    if (got == 0) return 0;
    for (ssize_t at_byte = 0; at_byte < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer + at_byte);
      const absl::string_view found = entry->d_name;
      if (found != "." && found != ".." && !each(entry->d_name)) return 0;
      at_byte += entry->d_reclen;
    }
  }
}

}  // namespace switchyard::pci
