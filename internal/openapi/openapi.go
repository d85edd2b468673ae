// Package openapi makes an OpenAPI 3.1 document of services that Connect serves: each unary
// method is a POST of JSON, and a GET as well if it has no side effects. Descriptions are
// the comments of the contract; constraints are those of protovalidate.
package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// object is a JSON object. Its keys come out in order.
type object map[string]any

// Info is what is said of the API as a whole.
type Info struct{ Title, Version string }

// Document makes the document of the services of files. Comments are those of the files, by
// the full name of what they are about, see [Comments].
func Document(info Info, files []protoreflect.FileDescriptor, comments map[string]string) ([]byte, error) {
	d := document{comments: comments, schemas: object{"Error": errorSchema()}, paths: object{}}
	for _, file := range files {
		services := file.Services()
		for i := range services.Len() {
			d.service(services.Get(i))
		}
	}
	text, err := json.Marshal(object{
		"openapi": "3.1.0",
		"info": object{
			"title": info.Title, "version": info.Version,
			"description": "Methods that stream are served by Connect, gRPC and gRPC-Web alone: " + strings.Join(d.streaming, ", ") + ".",
			"license":     object{"name": "Apache 2.0", "identifier": "Apache-2.0"},
		},
		"servers": []any{object{
			"url": "{address}", "description": "A server that starter serve runs.",
			"variables": object{"address": object{"default": "http://127.0.0.1:8080", "description": "Its address. The default is that of make dev."}},
		}},
		"security": []any{object{"bearer": []any{}}, object{}}, // A server on loopback may let everybody in.
		"tags":     d.tags,
		"paths":    d.paths,
		"components": object{
			"schemas": d.schemas,
			"securitySchemes": object{"bearer": object{
				"type": "http", "scheme": "bearer", "description": "A token of the server's file, or of an OIDC issuer. Servers without authentication need none.",
			}},
			"responses": object{"Error": object{
				"description": "The call failed. The status is that of the code.",
				"content":     jsonContent(ref("Error")),
			}},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, text, "", " "); err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	indented.WriteByte('\n')
	return indented.Bytes(), nil
}

// document is one in the making.
type document struct {
	comments map[string]string
	tags     []object
	paths    object
	schemas  object
	// streaming are the methods that have no path.
	streaming []string
}

func (d *document) comment(of protoreflect.FullName) string { return d.comments[string(of)] }

func (d *document) service(s protoreflect.ServiceDescriptor) {
	d.tags = append(d.tags, object{"name": s.Name(), "description": d.comment(s.FullName())})
	for i := range s.Methods().Len() {
		if m := s.Methods().Get(i); m.IsStreamingClient() || m.IsStreamingServer() {
			d.streaming = append(d.streaming, string(m.Name()))
		} else {
			d.method(s, m)
		}
	}
}

func (d *document) method(s protoreflect.ServiceDescriptor, m protoreflect.MethodDescriptor) {
	input, output := d.message(m.Input()), d.message(m.Output())
	operation := func(suffix string, more object) object {
		o := object{
			"operationId": string(s.Name()) + "_" + string(m.Name()) + suffix,
			"tags":        []any{s.Name()},
			"responses": object{
				"200": object{"description": "The call succeeded.", "content": jsonContent(output)},
				"4XX": object{"$ref": "#/components/responses/Error"},
				"5XX": object{"$ref": "#/components/responses/Error"},
			},
		}
		o["summary"] = inWords(string(m.Name()))
		if text := d.comment(m.FullName()); text != "" {
			o["summary"], o["description"] = firstSentence(text), text
		}
		for key, value := range more {
			o[key] = value
		}
		return o
	}
	path := object{"post": operation("", object{"requestBody": object{"required": true, "content": jsonContent(input)}})}
	options, _ := m.Options().(*descriptorpb.MethodOptions)
	if options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS {
		path["get"] = operation("_get", object{"parameters": []any{
			object{"name": "encoding", "in": "query", "required": true, "schema": object{"const": "json"}},
			object{"name": "message", "in": "query", "required": true, "description": "The request as JSON.", "content": jsonContent(input)},
		}})
	}
	d.paths[fmt.Sprintf("/%s/%s", s.FullName(), m.Name())] = path
}

var capital = regexp.MustCompile(`[A-Z]`)

// inWords is the name of a method in words: Create job.
func inWords(name string) string {
	text := strings.ToLower(capital.ReplaceAllString(name, " $0"))
	return strings.ToUpper(text[1:2]) + text[2:] + "."
}

// firstSentence is what a comment begins with.
func firstSentence(text string) string {
	if sentence, _, more := strings.Cut(text, ". "); more {
		return sentence + "."
	}
	return text
}

func jsonContent(schema object) object { return object{"application/json": object{"schema": schema}} }

func ref(name string) object { return object{"$ref": "#/components/schemas/" + name} }

// errorSchema is the form in which Connect sends errors.
func errorSchema() object {
	codes := []any{
		"canceled", "unknown", "invalid_argument", "deadline_exceeded", "not_found", "already_exists", "permission_denied", "resource_exhausted",
		"failed_precondition", "aborted", "out_of_range", "unimplemented", "internal", "unavailable", "data_loss", "unauthenticated",
	}
	return object{
		"type": "object", "required": []any{"code"},
		"properties": object{
			"code":    object{"enum": codes},
			"message": object{"type": "string"},
			"details": object{"type": "array", "items": object{
				"type": "object",
				"properties": object{
					"type":  object{"type": "string", "description": "The name of a message, such as google.rpc.ErrorInfo."},
					"value": object{"type": "string", "contentEncoding": "base64", "description": "The message as protobuf, without padding."},
					"debug": object{"description": "The message as JSON."},
				},
			}},
		},
	}
}

// shortName is the name of a type in the document.
func shortName(name protoreflect.FullName, parent protoreflect.FullName) string {
	return strings.ReplaceAll(strings.TrimPrefix(string(name), string(parent)+"."), ".", "_")
}
