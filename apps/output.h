// SPDX-License-Identifier: Apache-2.0
#pragma once

// How subcommands speak: results on standard output as an aligned table or as JSON, errors on
// standard error, one line each.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/status.h"

namespace switchyard::apps {

// Columns as wide as their widest cell, two spaces between them, nothing after the last one. An
// empty cell is shown as "-"; control characters (a file's text may hold any) as "?".
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] std::string ToString() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

void Print(absl::string_view text);  // standard output, with a newline
void PrintJson(const nlohmann::ordered_json& json);

// An error of the command line itself: Fail makes exit code 2 of it.
[[nodiscard]] Status UsageStatus(absl::string_view message);

// Print "switchyard: message" for each line of it; return the exit code.
int Fail(const Status& status);
int UsageError(absl::string_view message);

}  // namespace switchyard::apps
