package payloadcodec

import (
	"crypto/rand"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// What an encrypted payload has in its metadata: names of the samples of Temporal,
// https://github.com/temporalio/samples-go/tree/main/encryption.
const (
	encoding   = "binary/encrypted"
	keyIDField = "encryption-key-id"
)

// Error is that of a payload that these keys do not open.
type Error struct{ text string }

// Error implements error.
func (e *Error) Error() string { return e.text }

// GRPCStatus has the SDK not call again: the keys stay as they are.
func (e *Error) GRPCStatus() *status.Status { return status.New(codes.FailedPrecondition, e.text) }

var _ converter.PayloadCodec = Keys{}

// Encode implements converter.PayloadCodec. The data of an encrypted payload is a nonce of
// 12 bytes, then the whole payload sealed by AES-256-GCM, with the key id as additional data.
// A payload that is encrypted stays as it is.
func (k Keys) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	if len(k.ids) == 0 {
		return payloads, nil
	}
	id := k.ids[0]
	aead := k.byID[id]
	encrypted := make([]*commonpb.Payload, len(payloads))
	for n, payload := range payloads {
		if isEncrypted(payload) {
			encrypted[n] = payload
			continue
		}
		plain, err := proto.Marshal(payload)
		if err != nil {
			return nil, fmt.Errorf("encrypt a payload: %w", err)
		}
		nonce := make([]byte, aead.NonceSize(), aead.NonceSize()+len(plain)+aead.Overhead())
		if _, err := rand.Read(nonce); err != nil {
			return nil, fmt.Errorf("encrypt a payload: %w", err)
		}
		encrypted[n] = &commonpb.Payload{
			Metadata: map[string][]byte{converter.MetadataEncoding: []byte(encoding), keyIDField: []byte(id)},
			Data:     aead.Seal(nonce, nonce, plain, []byte(id)),
		}
	}
	return encrypted, nil
}

// Decode implements converter.PayloadCodec. Payloads that are not encrypted stay as they are. It
// gives an [Error] for one whose key is missing or does not open it.
func (k Keys) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	decrypted := make([]*commonpb.Payload, len(payloads))
	for n, payload := range payloads {
		var err error
		if decrypted[n], err = k.decrypt(payload); err != nil {
			return nil, err
		}
	}
	return decrypted, nil
}

func (k Keys) decrypt(payload *commonpb.Payload) (*commonpb.Payload, error) {
	if !isEncrypted(payload) {
		return payload, nil
	}
	id := string(payload.GetMetadata()[keyIDField])
	aead := k.byID[id]
	switch {
	case k.where == "":
		return nil, &Error{fmt.Sprintf("temporal has a payload that the key %.64q encrypted, and %s is not set", id, EnvKeys)}
	case aead == nil:
		return nil, &Error{fmt.Sprintf("temporal has a payload that the key %.64q encrypted, and it is not in %s, the file of %s", id, k.where, EnvKeys)}
	case len(payload.GetData()) < aead.NonceSize():
		return nil, &Error{fmt.Sprintf("temporal has a payload of the key %q that is cut off", id)}
	}
	nonce, sealed := payload.GetData()[:aead.NonceSize()], payload.GetData()[aead.NonceSize():]
	plain, err := aead.Open(nil, nonce, sealed, []byte(id))
	if err != nil {
		return nil, &Error{fmt.Sprintf("temporal has a payload that the key %q of %s, the file of %s, does not open: "+
			"it is another key of this id, or the payload was changed", id, k.where, EnvKeys)}
	}
	opened := &commonpb.Payload{}
	if err := proto.Unmarshal(plain, opened); err != nil {
		return nil, &Error{fmt.Sprintf("temporal has a payload of the key %q that is not a payload: %s", id, err)}
	}
	return opened, nil
}

func isEncrypted(payload *commonpb.Payload) bool {
	return string(payload.GetMetadata()[converter.MetadataEncoding]) == encoding
}
