// SPDX-License-Identifier: Apache-2.0
#include "apps/output.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "apps/command.h"

namespace switchyard::apps {
namespace {

constexpr absl::string_view kUsageMark = "switchyard/usage";  // a status payload

std::string Cell(const std::string& text) {
  if (text.empty()) return "-";
  std::string shown = text;
  std::replace_if(shown.begin(), shown.end(), absl::ascii_iscntrl, '?');
  return shown;
}

void PrintErrors(absl::string_view message) {
  for (const absl::string_view line : absl::StrSplit(message, '\n')) {
    std::fprintf(stderr, "switchyard: %s\n", std::string(line).c_str());
  }
}

}  // namespace

std::string Table::ToString() const {
  std::vector<size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Cell(row[i]).size());
  }
  std::string text;
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      std::string cell = Cell(row[i]);
      if (i + 1 < row.size()) cell.resize(widths[i] + 2, ' ');
      text += cell;
    }
    text += '\n';
  }
  if (!text.empty()) text.pop_back();  // Print ends the line
  return text;
}

void Print(absl::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
}

void PrintJson(const nlohmann::ordered_json& json) {
  // Text from outside may be no UTF-8: shown with replacement characters, never an exception.
  Print(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

Status UsageStatus(absl::string_view message) {
  Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kUsageMark, absl::Cord());
  return status;
}

int Fail(const Status& status) {
  PrintErrors(status.message());
  return status.GetPayload(kUsageMark).has_value() ? kExitUsage : kExitFailed;
}

int UsageError(absl::string_view message) {
  PrintErrors(message);
  return kExitUsage;
}

}  // namespace switchyard::apps
