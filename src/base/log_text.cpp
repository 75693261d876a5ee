// SPDX-License-Identifier: Apache-2.0
#include "base/log_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace switchyard {
namespace {

constexpr size_t kMaxValue = 4096;

// Length of the well-formed UTF-8 character at the head of `text` (RFC 3629); 0 if there is none.
size_t CharacterLength(absl::string_view text) {
  const auto at = [&](size_t i) {
    return static_cast<unsigned char>(i < text.size() ? text[i] : 0);
  };
  const auto is_tail = [&](size_t i) { return (at(i) & 0xc0) == 0x80; };
  const unsigned char first = at(0);
  if (first < 0x80) return text.empty() ? 0 : 1;
  if (first >= 0xc2 && first <= 0xdf) return is_tail(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool overlong = first == 0xe0 && at(1) < 0xa0;
    const bool surrogate = first == 0xed && at(1) > 0x9f;
    return is_tail(1) && is_tail(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool overlong = first == 0xf0 && at(1) < 0x90;
    const bool too_high = first == 0xf4 && at(1) > 0x8f;
    return is_tail(1) && is_tail(2) && is_tail(3) && !overlong && !too_high ? 4 : 0;
  }
  return 0;
}

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

void AppendEscaped(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\r':
      out += "\\r";
      break;
    case '\t':
      out += "\\t";
      break;
    default:
      if (IsControl(c)) {
        absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned char>(c));
      } else {
        out.push_back(c);
      }
  }
}

bool IsPlain(absl::string_view value) {
  return !value.empty() && value.size() <= kMaxValue &&
         std::all_of(value.begin(), value.end(), [](char c) {
           return !IsControl(c) && static_cast<unsigned char>(c) < 0x80 && c != ' ' && c != '"' &&
                  c != '=' && c != '\\';
         });
}

}  // namespace

void AppendQuotedValue(std::string& out, absl::string_view value) {
  out.push_back('"');
  for (size_t i = 0; i < value.size() && i < kMaxValue;) {
    const size_t length = CharacterLength(value.substr(i));
    if (length == 0) {
      out += "\\ufffd";
    } else if (length == 1) {
      AppendEscaped(out, value[i]);
    } else {
      absl::StrAppend(&out, value.substr(i, length));
    }
    i += std::max(length, size_t{1});
  }
  out.push_back('"');
}

void AppendTextValue(std::string& out, absl::string_view value) {
  if (IsPlain(value)) {
    absl::StrAppend(&out, value);
  } else {
    AppendQuotedValue(out, value);
  }
}

}  // namespace switchyard
