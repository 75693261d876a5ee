// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/log_sink.h"
#include "base/log_text.h"
#include "base/log_thread.h"

namespace switchyard {
namespace {

const char* LevelName(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::debug:
      return "debug";
    case spdlog::level::warn:
      return "warning";
    case spdlog::level::err:
      return "error";
    default:
      return "info";
  }
}

std::atomic<LogFormat> g_format = LogFormat::kText;

class LineFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const absl::Time time = absl::FromChrono(message.time);
    const std::string stamp = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
    std::string head;
    if (g_format == LogFormat::kJson) {
      head = absl::StrFormat("{\"time\":\"%s\",\"level\":\"%s\",", stamp, LevelName(message.level));
    } else {
      head = absl::StrFormat("time=%s level=%s ", stamp, LevelName(message.level));
    }
    out.append(head.data(), head.data() + head.size());
    out.append(message.payload.begin(), message.payload.end());
    if (g_format == LogFormat::kJson) out.push_back('}');
    out.push_back('\n');
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<LineFormatter>();
  }
};

class LineSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void SendTo(LogThread* thread) {
    const std::lock_guard lock(mutex_);
    thread_ = thread;
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    line_.clear();
    formatter_->format(message, line_);
    const absl::string_view line(line_.data(), line_.size());
    if (thread_ != nullptr) {
      thread_->Append(line, message.level >= spdlog::level::err);
    } else {
      WriteToStandardError(line);
    }
  }
  void flush_() override {}

  LogThread* thread_ = nullptr;
  spdlog::memory_buf_t line_;
};

const std::shared_ptr<LineSink>& Sink() {
  static const auto* sink = new std::shared_ptr<LineSink>(std::make_shared<LineSink>());
  return *sink;
}

spdlog::level::level_enum LevelOf(Severity severity) {
  switch (severity) {
    case Severity::kDebug:
      return spdlog::level::debug;
    case Severity::kWarning:
      return spdlog::level::warn;
    case Severity::kError:
      return spdlog::level::err;
    case Severity::kInfo:
      break;
  }
  return spdlog::level::info;
}

spdlog::logger& Logger() {
  static spdlog::logger* logger = [] {
    auto* made = new spdlog::logger("switchyard", Sink());
    made->set_formatter(std::make_unique<LineFormatter>());
    made->set_level(spdlog::level::info);
    return made;
  }();
  return *logger;
}

void Write(Severity severity, absl::string_view message, std::span<const LogField> fields) {
  const auto level = LevelOf(severity);
  if (!Logger().should_log(level)) return;
  std::string line;
  if (g_format == LogFormat::kJson) {
    line += "\"msg\":";
    AppendQuotedValue(line, message);
    for (const auto& [key, value] : fields) {
      line.push_back(',');
      AppendQuotedValue(line, key);
      line.push_back(':');
      AppendQuotedValue(line, value);
    }
  } else {
    line += "msg=";
    AppendTextValue(line, message);
    for (const auto& [key, value] : fields) {
      line.push_back(' ');
      absl::StrAppend(&line, key);
      line.push_back('=');
      AppendTextValue(line, value);
    }
  }
  Logger().log(level, spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace

void SendLinesTo(LogThread* thread) { Sink()->SendTo(thread); }

void InitLogging(LogFormat format, Severity level) {
  g_format = format;
  Logger().set_level(LevelOf(level));
}

void Log(Severity severity, absl::string_view message, std::initializer_list<LogField> fields) {
  Write(severity, message, {fields.begin(), fields.size()});
}

void LogEvent(const Event& event) {
  std::vector<LogField> fields;
  fields.reserve(event.fields.size() + 1);
  fields.emplace_back("event", event.name);
  fields.insert(fields.end(), event.fields.begin(), event.fields.end());
  Write(event.severity, event.message, fields);
}

}  // namespace switchyard
