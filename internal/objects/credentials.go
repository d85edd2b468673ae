package objects

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// credentials are what requests are signed with.
func (c Config) credentials() *credentials.Credentials {
	if c.CredentialsFile == "" {
		return credentials.NewStaticV4(c.AccessKey, c.SecretKey, c.SessionToken)
	}
	return credentials.New(&credentialsFile{FileAWSCredentials: credentials.FileAWSCredentials{
		Filename: c.CredentialsFile, Profile: cmp.Or(c.Profile, "default"),
	}})
}

// credentialsFile is a file that is read again when it has changed.
type credentialsFile struct {
	credentials.FileAWSCredentials

	read time.Time // when what was read was written
}

// RetrieveWithCredContext implements credentials.Provider.
func (f *credentialsFile) RetrieveWithCredContext(cc *credentials.CredContext) (credentials.Value, error) {
	f.read = f.modified()
	value, err := f.FileAWSCredentials.RetrieveWithCredContext(cc)
	return value, f.check(value, err)
}

// Retrieve implements credentials.Provider.
func (f *credentialsFile) Retrieve() (credentials.Value, error) {
	return f.RetrieveWithCredContext(nil)
}

// IsExpired implements credentials.Provider.
func (f *credentialsFile) IsExpired() bool {
	return f.FileAWSCredentials.IsExpired() || !f.read.Equal(f.modified())
}

func (f *credentialsFile) modified() time.Time {
	info, err := os.Stat(f.Filename)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// check refuses a file without keys. Errors of its syntax could quote them.
func (f *credentialsFile) check(value credentials.Value, err error) error {
	if _, failed := errors.AsType[*os.PathError](err); failed {
		return err
	}
	if err != nil || value.AccessKeyID == "" || value.SecretAccessKey == "" {
		return fmt.Errorf("%s has no aws_access_key_id with aws_secret_access_key in the profile %s", f.Filename, f.Profile)
	}
	return nil
}
