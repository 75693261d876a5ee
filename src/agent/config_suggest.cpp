// SPDX-License-Identifier: Apache-2.0
#include "agent/config_suggest.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace switchyard::agent {
namespace {

constexpr size_t kMaxCompared = 64;  // bytes; bounds the work on hostile input

std::string Normal(absl::string_view name) {
  std::string normal;
  for (const char c : name.substr(0, kMaxCompared)) {
    if (c == '-' || c == '_' || c == '.') continue;
    normal.push_back(absl::ascii_tolower(static_cast<unsigned char>(c)));
  }
  return normal;
}

// Levenshtein's distance, one row at a time.
size_t Edits(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

size_t Distance(absl::string_view name, absl::string_view candidate) {
  const std::string wanted = Normal(name);
  const size_t whole = Edits(wanted, Normal(candidate));
  const size_t dot = candidate.rfind('.');
  if (dot == absl::string_view::npos) return whole;
  return std::min(whole, 1 + Edits(wanted, Normal(candidate.substr(dot + 1))));
}

}  // namespace

std::string Nearest(absl::string_view name, const std::vector<std::string>& candidates) {
  std::string nearest;
  size_t least = 0;
  for (const std::string& candidate : candidates) {
    const size_t distance = Distance(name, candidate);
    if (!nearest.empty() && distance >= least) continue;
    nearest = candidate;
    least = distance;
  }
  return nearest;
}

}  // namespace switchyard::agent
