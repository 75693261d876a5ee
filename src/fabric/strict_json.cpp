// SPDX-License-Identifier: Apache-2.0
#include "fabric/strict_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace switchyard::fabric {
namespace {

using nlohmann::json;

// A first pass that looks at the shape only, so that the second can't be made to build something
// deep, and no key is lost.
class ShapeCheck final : public nlohmann::json_sax<json> {
 public:
  std::string problem;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_array(size_t) override { return Open(); }
  bool end_array() override { return Close(); }
  bool start_object(size_t) override { return Open(); }
  bool end_object() override { return Close(); }

  bool key(string_t& key) override {
    if (keys_.back().insert(key).second) return true;
    problem = absl::StrCat("key ", Quoted(key), " appears twice");
    return false;
  }

  bool parse_error(size_t position, const std::string&, const json::exception& error) override {
    // The message begins with the library's own "[json.exception...] " and quotes what it read.
    absl::string_view text = error.what();
    if (const size_t end = text.find("] "); end != absl::string_view::npos)
      text.remove_prefix(end + 2);
    problem = absl::StrCat("not valid JSON at byte ", position, ": ",
                           absl::Utf8SafeCEscape(text.substr(0, 200)));
    return false;
  }

 private:
  bool Open() {
    keys_.emplace_back();
    if (keys_.size() <= size_t{kMaxJsonDepth}) return true;
    problem = absl::StrCat("nested deeper than ", kMaxJsonDepth, " levels");
    return false;
  }
  bool Close() {
    keys_.pop_back();
    return true;
  }

  std::vector<std::set<std::string>> keys_;  // of each open object (empty for an array)
};

bool In(std::initializer_list<absl::string_view> list, absl::string_view key) {
  return std::find(list.begin(), list.end(), key) != list.end();
}

}  // namespace

std::string Quoted(absl::string_view text) {
  constexpr size_t kMaxShown = 64;
  return absl::StrCat("\"", absl::CEscape(text.substr(0, kMaxShown)),
                      text.size() > kMaxShown ? "...\"" : "\"");
}

Status BadJson(absl::string_view name, absl::string_view key, absl::string_view message) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": ", key, key.empty() ? "" : ": ", message));
}

Result<json> ParseStrictJson(absl::string_view text, absl::string_view name, size_t max_bytes) {
  if (text.size() > max_bytes) {
    return BadJson(name, "",
                   absl::StrCat(text.size(), " bytes are more than the ", max_bytes,
                                " that such a file may have"));
  }
  // The library takes a NUL for the end and would not look at what follows.
  if (const size_t nul = text.find('\0'); nul != absl::string_view::npos)
    return BadJson(name, "", absl::StrCat("not valid JSON at byte ", nul, ": a NUL byte"));
  ShapeCheck check;
  if (!json::sax_parse(text.begin(), text.end(), &check)) return BadJson(name, "", check.problem);
  json value = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!value.is_object()) return BadJson(name, "", "the top level must be a JSON object, { ... }");
  return value;
}

Result<JsonObject> JsonObject::Make(const json& value, absl::string_view name, std::string path,
                                    std::initializer_list<absl::string_view> required,
                                    std::initializer_list<absl::string_view> optional) {
  JsonObject object(value, name, std::move(path));
  if (!value.is_object()) return BadJson(name, object.path_, "must be an object, { ... }");
  for (const auto& [key, unused] : value.items()) {
    if (!In(required, key) && !In(optional, key))
      return BadJson(name, object.path_, absl::StrCat("unknown key ", Quoted(key)));
  }
  for (absl::string_view key : required) {
    if (!object.Has(key))
      return BadJson(name, object.path_, absl::StrCat("key \"", key, "\" is missing"));
  }
  return object;
}

bool JsonObject::Has(absl::string_view key) const { return value_->contains(std::string(key)); }

const json& JsonObject::At(absl::string_view key) const { return (*value_)[std::string(key)]; }

std::string JsonObject::PathOf(absl::string_view key) const {
  return absl::StrCat(path_, path_.empty() ? "" : ".", key);
}

Status JsonObject::Bad(absl::string_view key, absl::string_view message) const {
  return BadJson(name_, PathOf(key), message);
}

Result<std::int64_t> JsonObject::Integer(absl::string_view key, std::int64_t min,
                                         std::int64_t max) const {
  const json& value = At(key);
  // The library holds what is written without a sign as unsigned, up to 2^64.
  const bool fits = value.is_number_integer() &&
                    !(value.is_number_unsigned() &&
                      value.get<std::uint64_t>() >
                          static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  if (fits) {
    const auto number = value.get<std::int64_t>();
    if (number >= min && number <= max) return number;
  }
  return Bad(key, absl::StrCat("must be a whole number from ", min, " to ", max));
}

Result<bool> JsonObject::Bool(absl::string_view key) const {
  const json& value = At(key);
  if (!value.is_boolean()) return Bad(key, "must be true or false");
  return value.get<bool>();
}

Result<std::string> JsonObject::String(absl::string_view key, size_t max_bytes) const {
  const json& value = At(key);
  if (!value.is_string()) return Bad(key, "must be a string");
  const auto& text = value.get_ref<const std::string&>();
  if (text.size() > max_bytes)
    return Bad(key, absl::StrCat("must be at most ", max_bytes, " bytes long"));
  return text;
}

Result<const json*> JsonObject::Array(absl::string_view key) const {
  const json& value = At(key);
  if (!value.is_array()) return Bad(key, "must be an array, [ ... ]");
  return &value;
}

}  // namespace switchyard::fabric
